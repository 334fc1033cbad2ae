/**
 * Example 01 in a bucket whose server answers 20 ms late: the time of an iteration in which neither the engine nor a
 * scorer worked, how many requests it sends, and how many of them one after the other.
 */
import { InvalidInputError } from '../../core/errors.ts';
import { ensureStack } from '../../infra/stack/index.ts';
import { inARow, kindOf, startFarStore, statusLook, trafficOf } from '../../tests/store-traffic.ts';
import { median } from '../clock.ts';
import type { BenchSettings, Measurement, Session, Values } from '../measurement.ts';
import { iterationTimes } from '../run/iterations.ts';
import { privateHome } from '../run/private-home.ts';
import { runExample } from '../run/start.ts';

const delayMs = 20;
/** Iterations that do not count: the first ones begin where no stage has left the log. */
const warmUp = 3;
const methods = ['HEAD', 'GET', 'PUT', 'DELETE'] as const;

/** `bucket`: `s3://bucket/prefix` of the server at AWS_ENDPOINT_URL. */
export const farStore = (bucket: string): Measurement => ({
  name: 'far-store',
  rows: [
    { name: `orchestration.store${delayMs}ms`, unit: 'ms' },
    { name: 'roundtrips.iteration', unit: 'requests' },
    { name: 'requests.iteration', unit: 'requests' },
    ...methods.map((method) => ({ name: `requests.iteration.${method}`, unit: 'requests' }) as const),
  ],
  turns: 1,
  open: (settings) => open(bucket, settings),
});

async function open(bucket: string, { quick, threads }: BenchSettings): Promise<Session> {
  const endpoint = process.env['AWS_ENDPOINT_URL'];
  if (endpoint === undefined) throw new InvalidInputError('expected the S3 server in AWS_ENDPOINT_URL, found nothing');
  const { home, remove } = privateHome();
  const proxy = await startFarStore(endpoint, delayMs);
  process.env['AWS_ENDPOINT_URL'] = proxy.endpoint;
  const iterations = warmUp + (quick ? 2 : 12);
  return {
    about: `${iterations} iterations of the quickstart, deterministic, in ${bucket} behind ${delayMs} ms`,
    async turn(): Promise<Values> {
      await ensureStack({
        home,
        workers: [{ name: 'local', count: 1, roles: ['trainer', 'rollout', 'reward'], threads }],
      });
      const log = await runExample(home, '01-arithmetic-grpo', iterations, `${bucket}/far`);
      const traffic = trafficOf(proxy.answered(), warmUp + 1, iterations);
      const count = (isCounted: (kind: string) => boolean) =>
        median(traffic.map((requests) => requests.filter((one) => isCounted(kindOf(one))).length));
      const byMethod = methods.map((method) => {
        const looks = method === 'HEAD' ? statusLook : 0;
        return [`requests.iteration.${method}`, looks + count((kind) => kind.startsWith(method))] as const;
      });
      return {
        [`orchestration.store${delayMs}ms`]: median((await iterationTimes(log, warmUp)).map(({ idleMs }) => idleMs)),
        'roundtrips.iteration': median(traffic.map(inARow)),
        'requests.iteration': statusLook + count(() => true),
        ...Object.fromEntries(byMethod),
      };
    },
    async close() {
      await remove();
      await proxy.close();
    },
  };
}
