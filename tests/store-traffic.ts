/** What a run asks of a store behind a proxy that answers late, as a store that is far away does. */
import { setTimeout as sleep } from 'node:timers/promises';
import { startFaultProxy } from './fault-proxy.ts';
import type { AnsweredRequest, FaultProxy } from './fault-proxy.ts';

/** A proxy in front of a store, whose requests wait so long before the store gets them. */
export async function startFarStore(endpoint: string, delayMs: number): Promise<FaultProxy> {
  const proxy = await startFaultProxy(endpoint);
  proxy.add({ fault: { type: 'wait', for: () => sleep(delayMs) }, times: Number.POSITIVE_INFINITY });
  return proxy;
}

/**
 * The requests of iterations `first` to `last` of a run's first term, each from the commit before to its own. Left out
 * is what the clock causes: log lines are written every second, and the run's state is looked at in turns. An update
 * looks at the state, too (`statusLook`).
 */
export function trafficOf(requests: readonly AnsweredRequest[], first: number, last: number): AnsweredRequest[][] {
  const counted = requests.filter(({ url }) => !/\/(logs|status)\//.test(url));
  const end = (k: number) =>
    counted.findIndex(({ method, url }) => method === 'PUT' && url.includes(`/terms/1/${k}/update.json`)) + 1;
  return Array.from({ length: last - first + 1 }, (_, i) => counted.slice(end(first + i - 1), end(first + i)));
}

/** Requests for the run's state by an update. */
export const statusLook = 2;

/** `GET blobs`, or `PUT update.json`. */
export function kindOf({ method, url }: AnsweredRequest): string {
  const [folder = '', ...names] = url.slice(url.lastIndexOf('/runs/')).replace(/\?.*/, '').split('/').slice(3);
  return `${method} ${folder === 'terms' ? names.at(-1) : folder}`;
}

/** The most requests of which each was sent after the answer to the one before. Looks are beside the work. */
export function inARow(requests: readonly AnsweredRequest[]): number {
  let [count, until] = [0, 0];
  for (const request of requests.filter(({ url }) => !url.includes('/term.json')).sort((a, b) => a.until - b.until))
    if (request.from >= until) [count, until] = [count + 1, request.until];
  return count;
}
