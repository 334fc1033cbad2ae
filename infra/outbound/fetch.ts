/** `fetch` through the proxy that the environment names. Node's own knows no proxies before Node 24. */
import { Agent, Dispatcher, fetch as undiciFetch, ProxyAgent } from 'undici';
import { proxyOf } from './proxy-of.ts';

/** A `fetch` that asks for each request, redirected ones too, which proxy it goes through. */
export function outboundFetch(env: NodeJS.ProcessEnv = process.env): typeof fetch {
  const dispatcher = new ChoosingDispatcher(env);
  const call = (input: string | URL, init: object = {}) => undiciFetch(input, { ...init, dispatcher });
  return call as unknown as typeof fetch;
}

class ChoosingDispatcher extends Dispatcher {
  readonly #env: NodeJS.ProcessEnv;
  readonly #direct = new Agent();
  readonly #through = new Map<string, ProxyAgent>();

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
    const known = this.#through.get(proxy.href);
    if (known !== undefined) return known;
    // Many proxies refuse a tunnel to port 80, so plain HTTP is asked of the proxy itself.
    const agent = new ProxyAgent({ uri: proxy.href, proxyTunnel: false });
    this.#through.set(proxy.href, agent);
    return agent;
  }
}
