/** The scorer host of a run whose recipe has an endpoint, or limits for calls of its scorer. */
import { ENDPOINT_SCORERS, type EndpointLimits } from '../../core/endpoint.ts';
import type { RunId } from '../../core/ids.ts';
import type { Permits } from '../../core/ports/permits.ts';
import type { ScoringSettings } from '../../core/wire/jobs/index.ts';
import { outboundWays } from '../../infra/outbound/ways.ts';
import { EndpointClient } from '../../rewards/endpoint/client.ts';
import { EndpointHost, LimitedHost, ProxiedHost } from '../../rewards/endpoint/host.ts';
import { endpointScorers } from '../../rewards/endpoint/scorers.ts';
import type { Desks } from '../../rewards/host/host-types.ts';
import type { ScorerHost } from '../../rewards/host/scorer-host.ts';

export type PermitsOf = (runId: RunId, limits: EndpointLimits) => Permits;

const nameOf = ({ scorer }: ScoringSettings): string | undefined =>
  scorer.type === 'builtin' ? scorer.name : undefined;

/** Is the scorer a built-in one that asks the endpoint itself? */
export const asksEndpoint = (input: ScoringSettings): boolean => ENDPOINT_SCORERS.includes(nameOf(input) ?? '');

/** `start`: starts the scorer's own processes. @throws UnfitError `MissingSecret` when this worker has no key. */
export async function hostWithin(
  input: ScoringSettings,
  runId: RunId,
  permitsOf: PermitsOf,
  say: (line: string) => void,
  start: (desks?: Desks) => Promise<ScorerHost>,
): Promise<ScorerHost> {
  const { endpoint } = input;
  if (endpoint === undefined) return start();
  const permits = permitsOf(runId, endpoint.limits);
  if (endpoint.url === undefined) return new LimitedHost(await start(), permits, endpoint.tokensPerRequest);
  const client = new EndpointClient(endpoint, {
    permits,
    env: process.env,
    ways: outboundWays(),
    resume: `petrel resume ${runId}`,
  });
  const scorer = endpointScorers[nameOf(input) ?? ''];
  return scorer === undefined ? ProxiedHost.start(client, say, start) : new EndpointHost(client, scorer);
}
