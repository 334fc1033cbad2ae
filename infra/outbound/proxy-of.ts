/**
 * Which proxy a request goes through: the rules of curl for `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`, in
 * small or capital letters. Addresses of this machine never go through a proxy, whatever the variables say: a proxy is
 * another machine, and its 127.0.0.1 is not ours. (No library knows that rule, and few know networks such as 10.0.0.0/8
 * in `no_proxy`.)
 */
import { BlockList, isIP } from 'node:net';
import { InvalidInputError } from '../../core/errors.ts';

type Environment = Readonly<Record<string, string | undefined>>;

const own = new BlockList();
own.addSubnet('127.0.0.0', 8);
own.addAddress('0.0.0.0');
own.addAddress('::1', 'ipv6');
// Link-local addresses: the metadata service of a cloud answers the machine itself, and nobody behind a proxy.
own.addSubnet('169.254.0.0', 16);
own.addSubnet('fe80::', 10, 'ipv6');

/** The variables that name a proxy, in small letters. */
const proxyVariables = ['http_proxy', 'https_proxy', 'all_proxy'] as const;

/** True when a variable names a proxy. */
export const namesProxy = (env: Environment = process.env): boolean =>
  proxyVariables.some((name) => valueOf(env, name) !== '');

/**
 * The proxy for this address; undefined: the connection is made directly. Throws InvalidInputError for a proxy of
 * another kind than HTTP.
 */
export function proxyOf(url: URL, env: Environment = process.env): URL | undefined {
  const scheme = url.protocol.slice(0, -1);
  const name = valueOf(env, `${scheme}_proxy`) === '' ? 'all_proxy' : `${scheme}_proxy`;
  const text = valueOf(env, name);
  if (text === '' || isOwn(hostOf(url)) || isExempt(url, valueOf(env, 'no_proxy'))) return undefined;
  const address = text.includes('://') ? text : `http://${text}`;
  if (/^https?:/i.test(address) && URL.canParse(address)) return new URL(address);
  throw new InvalidInputError(
    `${name} names no HTTP proxy for ${url.host}: expected http://HOST:PORT, got ${shown(text)}`,
    {
      hint: `export ${scheme}_proxy=http://HOST:PORT, or export no_proxy=${url.hostname} to go there without a proxy`,
    },
  );
}

/** True for loopback and link-local addresses and the names of loopback. */
export function isOwn(host: string): boolean {
  if (host === 'localhost' || host.endsWith('.localhost')) return true;
  const family = isIP(host);
  return family !== 0 && own.check(host, family === 6 ? 'ipv6' : 'ipv4');
}

/** `no_proxy`: names with all their subdomains, addresses and networks, each with a port if need be; `*` for all. */
function isExempt(url: URL, list: string): boolean {
  const port = url.port || (url.protocol === 'https:' ? '443' : '80');
  return list
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((entry) => entry !== '')
    .some((entry) => matches(entry, hostOf(url), port));
}

function matches(entry: string, host: string, port: string): boolean {
  if (entry === '*') return true;
  const [, bracketed, named, wantedPort] = /^(?:\[([^\]]+)\]|([^:]+|[^:]*:[^:]*:.*?))(?::(\d+))?$/.exec(entry) ?? [];
  if (wantedPort !== undefined && wantedPort !== port) return false;
  const wanted = (bracketed ?? named ?? entry).replace(/^\*?\./, '');
  if (wanted.includes('/')) return isInNetwork(host, wanted);
  return host === wanted || (isIP(host) === 0 && host.endsWith(`.${wanted}`));
}

function isInNetwork(host: string, network: string): boolean {
  const [address = '', bits = ''] = network.split('/');
  const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
  if (isIP(address) === 0 || isIP(host) !== isIP(address) || !/^\d{1,3}$/.test(bits)) return false;
  if (Number(bits) > (family === 'ipv6' ? 128 : 32)) return false;
  const list = new BlockList();
  list.addSubnet(address, Number(bits), family);
  return list.check(host, family);
}

const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '');
const valueOf = (env: Environment, name: string): string => env[name] || env[name.toUpperCase()] || '';

/** Errors show a proxy without its password. */
const shown = (proxy: string): string => proxy.replace(/\/\/[^@/]*@/, '//…@');
