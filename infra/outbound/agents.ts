/** Agents of node:http whose connections leave this machine through the proxy that the environment names. */
import { Agent as HttpAgent } from 'node:http';
import type { AgentOptions, ClientRequest } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { Agent } from 'agent-base';
import type { AgentConnectOpts } from 'agent-base';
import { HttpProxyAgent } from 'http-proxy-agent';
import { HttpsProxyAgent } from 'https-proxy-agent';
import { namesProxy, proxyOf } from './proxy-of.ts';

/** One for each kind of URL. */
export interface OutboundAgents {
  readonly httpAgent: HttpAgent;
  readonly httpsAgent: HttpsAgent;
}

/** Agents for clients of node:http. Without a proxy in the environment they are Node's own. */
export function outboundAgents(options: AgentOptions, env: NodeJS.ProcessEnv = process.env): OutboundAgents {
  const direct = { httpAgent: new HttpAgent(options), httpsAgent: new HttpsAgent(options) };
  if (!namesProxy(env)) return direct;
  const chooser = new ChoosingAgent(direct, options, env);
  return { httpAgent: chooser, httpsAgent: chooser as unknown as HttpsAgent };
}

/** Asks for each request: a redirect may lead to a host that `no_proxy` names. */
class ChoosingAgent extends Agent {
  readonly #direct: OutboundAgents;
  readonly #options: AgentOptions;
  readonly #env: NodeJS.ProcessEnv;
  readonly #through = new Map<string, HttpAgent>();

  constructor(direct: OutboundAgents, options: AgentOptions, env: NodeJS.ProcessEnv) {
    super(options);
    this.#direct = direct;
    this.#options = options;
    this.#env = env;
  }

  override async connect(
    _request: ClientRequest,
    { secureEndpoint, host, port }: AgentConnectOpts,
  ): Promise<HttpAgent> {
    const name = host?.includes(':') ? `[${host}]` : host;
    const proxy = proxyOf(new URL(`${secureEndpoint ? 'https' : 'http'}://${name}:${port}`), this.#env);
    if (proxy === undefined) return secureEndpoint ? this.#direct.httpsAgent : this.#direct.httpAgent;
    const key = `${secureEndpoint} ${proxy.href}`;
    const known = this.#through.get(key);
    if (known !== undefined) return known;
    const agent = secureEndpoint ? new HttpsProxyAgent(proxy, this.#options) : new HttpProxyAgent(proxy, this.#options);
    this.#through.set(key, agent);
    return agent;
  }

  override destroy(): void {
    for (const agent of [this.#direct.httpAgent, this.#direct.httpsAgent, ...this.#through.values()]) agent.destroy();
    super.destroy();
  }
}
