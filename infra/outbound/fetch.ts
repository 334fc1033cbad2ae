/** `fetch` through the proxy that the environment names. Node's own knows no proxies before Node 24. */
import { Agent, buildConnector, Dispatcher, fetch as undiciFetch, ProxyAgent } from 'undici';
import { proxyOf } from './proxy-of.ts';
import { tunnel } from './tunnel.ts';

/** A `fetch` that asks for each request, redirected ones too, which proxy it goes through. */
export function outboundFetch(env: NodeJS.ProcessEnv = process.env): typeof fetch {
  const dispatcher = new ChoosingDispatcher(env);
  const call = (input: string | URL, init: object = {}) => undiciFetch(input, { ...init, dispatcher });
  return call as unknown as typeof fetch;
}

class ChoosingDispatcher extends Dispatcher {
  readonly #env: NodeJS.ProcessEnv;
  readonly #direct = new Agent();
  readonly #through = new Map<string, Dispatcher>();

  constructor(env: NodeJS.ProcessEnv) {
    super();
    this.#env = env;
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    return this.#agentFor(new URL(String(options.origin))).dispatch(options, handler);
  }

  #agentFor(origin: URL): Dispatcher {
    const proxy = proxyOf(origin, this.#env);
    if (proxy === undefined) return this.#direct;
    const key = `${origin.protocol} ${proxy.href}`;
    const known = this.#through.get(key);
    if (known !== undefined) return known;
    // Many proxies refuse a tunnel to port 80, so plain HTTP is asked of the proxy itself.
    const agent =
      origin.protocol === 'https:'
        ? new Agent({ connect: connectorThrough(proxy) })
        : new ProxyAgent({ uri: proxy.href, proxyTunnel: false });
    this.#through.set(key, agent);
    return agent;
  }
}

function connectorThrough(proxy: URL): buildConnector.connector {
  const secured = buildConnector({});
  return (options, callback) => {
    const host = options.hostname.replace(/^\[(.*)\]$/, '$1');
    tunnel(proxy, { host, port: Number(options.port || 443) }).then(
      (httpSocket) => secured({ ...options, httpSocket }, callback),
      (error: Error) => callback(error, null),
    );
  };
}
