/**
 * The environments of the processes that petrel starts. A person sets variables for the tools of Temporal, NATS,
 * Python, npm and compilers, for other work than this: none of them may change what a stack does.
 * docs/look-up/environment.md has the list.
 */
import { namesProxy } from './outbound/proxy-of.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Whose variables petrel does not pass to its processes. */
const tools: readonly { readonly tool: string; readonly names: RegExp }[] = [
  { tool: 'Temporal', names: /^TEMPORAL_/i },
  { tool: 'NATS', names: /^(NATS|NSC|NKEYS)_/i },
  // `grpc_proxy`, in small letters, is a proxy like the others.
  { tool: 'gRPC', names: /^GRPC_|^no_grpc_proxy$/ },
  { tool: 'Node', names: /^NODE_(?!(EXTRA_CA_CERTS|TLS_REJECT_UNAUTHORIZED|OPTIONS)$)/ },
  { tool: 'npm', names: /^(npm|PNPM|YARN|COREPACK|BUN)_/i },
  // Where Python finds a user's packages stays, for scorers; pip's are read by rewards/host/chosen_pip.py.
  { tool: 'Python', names: /^PYTHON(?!(PATH|USERBASE|NOUSERSITE|HASHSEED|DONTWRITEBYTECODE|PYCACHEPREFIX)$)/ },
  { tool: 'uv', names: /^UV_/ },
  { tool: 'conda', names: /^(CONDA_(?!PREFIX$)|MAMBA_|_CE_)/ },
  { tool: 'Poetry', names: /^(POETRY|PIPENV|PDM|HATCH)_/ },
  {
    tool: 'a compiler',
    names:
      /^(CC|CXX|CPP|LD|AR|AS|NM|RANLIB|(C|CXX|CPP|LD|F|FC|MAKE)FLAGS|LDLIBS|CPATH|(LIBRARY|C_INCLUDE|CPLUS_INCLUDE)_PATH|(CMAKE|CCACHE)_\w+)$/,
  },
  { tool: 'Go', names: /^GO(DEBUG|GC|MAXPROCS|MEMLIMIT|TRACEBACK|FLAGS)$/ },
  { tool: 'Rust', names: /^(RUST|TOKIO)_/ },
];

/** The tool that a variable belongs to, when petrel's processes do not get it. */
export const toolOf = (name: string): string | undefined => tools.find(({ names }) => names.test(name))?.tool;

/**
 * Options of NODE_OPTIONS that stay, each with its value, which may be a word of its own: what a stack trace shows,
 * which certificates are trusted, how names are looked up.
 */
const keptNodeOptions =
  /(?<!\S)--(?:enable-source-maps|use-(?:openssl|system|bundled)-ca|tls-|dns-result-order|openssl-|force-fips|enable-fips)[^\s=]*(?:[\s=]+(?!-)(?:"(?:\\.|[^"\\])*"|\S+))?/g;

/**
 * The environment of petrel's own processes: the user's, without what belongs to tools, and without proxies for
 * loopback.
 */
export function processEnvironment(env: Environment = process.env): NodeJS.ProcessEnv {
  const kept = Object.entries(env).filter(([name]) => name !== 'NODE_OPTIONS' && toolOf(name) === undefined);
  const options: string[] = env['NODE_OPTIONS']?.match(keptNodeOptions) ?? [];
  if (env['PETREL_PRELOAD']) options.push(`--import=${JSON.stringify(env['PETREL_PRELOAD'])}`);
  return {
    ...Object.fromEntries(kept),
    ...(options.length > 0 && { NODE_OPTIONS: options.join(' ') }),
    ...(namesProxy(env) && withoutProxyForLoopback(env)),
  };
}

/** Libraries know these variables and not petrel's rule: infra/outbound/proxy-of.ts. */
function withoutProxyForLoopback(env: Environment): Environment {
  const given = env['no_proxy'] || env['NO_PROXY'] || '';
  const list = [...given.split(/[\s,]+/).filter((entry) => entry !== ''), 'localhost', '127.0.0.1', '::1'];
  const text = [...new Set(list)].join(',');
  return given.trim() === '*' ? {} : { no_proxy: text, NO_PROXY: text };
}

/**
 * The whole environment of the Temporal and NATS servers and of Temporal's command line. Both are told by arguments
 * what to do. Their home is a folder of petrel, so that they find no configuration of the user's: Temporal's command
 * line would read an address, a certificate or a key of a cloud there. Built without cgo, the Temporal server does not
 * start for a user id without a passwd entry unless USER and HOME are set.
 */
export function serverEnvironment(home: string, env: Environment = process.env): Readonly<Record<string, string>> {
  const kept = Object.entries({ PATH: env['PATH'], TMPDIR: env['TMPDIR'], TZ: env['TZ'] });
  const given = kept.filter((entry): entry is [string, string] => entry[1] !== undefined);
  return {
    ...Object.fromEntries(given),
    USER: env['USER'] || String(process.getuid?.() ?? 'petrel'),
    HOME: home,
    XDG_CONFIG_HOME: home,
    TEMPORAL_VERSION_CHECK_DISABLED: '1',
  };
}
