/**
 * Clients of the EC2 API, one per region. Endpoint and credentials come from the SDK's usual sources
 * (AWS_ENDPOINT_URL_EC2, AWS_PROFILE).
 */
import { EC2Client } from '@aws-sdk/client-ec2';
import { outboundAgents } from '../../outbound/agents.ts';

const connectMs = 5_000;
/** RunInstances answers in some seconds. */
const answerMs = 30_000;

/** A client per region: it holds the connections and the credentials. */
export class Ec2Clients {
  readonly #endpoint: string | undefined;
  readonly #clients = new Map<string, EC2Client>();

  /** `endpoint` overrides the environment's. */
  constructor(endpoint?: string) {
    this.#endpoint = endpoint;
  }

  in(region: string): EC2Client {
    let client = this.#clients.get(region);
    if (client === undefined) this.#clients.set(region, (client = this.#connect(region)));
    return client;
  }

  close(): void {
    for (const client of this.#clients.values()) client.destroy();
    this.#clients.clear();
  }

  /** The caller retries: it knows which calls are worth it, and how long the account is to be left alone. */
  #connect(region: string): EC2Client {
    // the pinned SDK version runs on this Node
    process.env['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] ??= 'true';
    return new EC2Client({
      region,
      ...(this.#endpoint !== undefined && { endpoint: this.#endpoint }),
      maxAttempts: 1,
      requestHandler: {
        ...outboundAgents({ keepAlive: true }),
        connectionTimeout: connectMs,
        requestTimeout: answerMs,
        throwOnRequestTimeout: true,
      },
    });
  }
}
