/** How requests to a user's service leave this machine: rewards/endpoint/post.ts takes them. */
import { outboundAgents } from './agents.ts';
import type { OutboundAgents } from './agents.ts';
import { proxyOf } from './proxy-of.ts';

let known: OutboundWays | undefined;

interface OutboundWays {
  readonly kept: OutboundAgents;
  readonly fresh: OutboundAgents;
  readonly proxyOf: typeof proxyOf;
}

/** The ways of this process. All its requests share their connections. */
export function outboundWays(): OutboundWays {
  known ??= { kept: outboundAgents({ keepAlive: true }), fresh: outboundAgents({ keepAlive: false }), proxyOf };
  return known;
}
