/**
 * What a test orders of a test cloud in another process: `POST /_test/<name>` with a JSON object, which answers JSON.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { z } from 'zod';
import type { TestCloud } from './cloud.ts';
import { bodyOf } from './protocol.ts';

const market = z.enum(['spot', 'onDemand']);
const id = z.strictObject({ id: z.string() });
const count = z.number().nonnegative().optional();

interface Order<T extends z.ZodType> {
  readonly takes: T;
  readonly run: (cloud: TestCloud, body: z.infer<T>) => unknown;
}

const order = <T extends z.ZodType>(takes: T, run: Order<T>['run']): Order<z.ZodType> => ({ takes, run: run as never });

/** Orders by name. Each is the method of TestCloud, or of its faults. */
const orders: Readonly<Record<string, Order<z.ZodType>>> = {
  interrupt: order(id.extend({ noticeMs: z.number().nonnegative().optional() }), (cloud, { id, noticeMs }) =>
    cloud.interrupt(id, noticeMs),
  ),
  rebalance: order(id, (cloud, { id }) => cloud.recommendRebalance(id)),
  lose: order(id, (cloud, { id }) => cloud.lose(id)),
  capacity: order(z.strictObject({ type: z.string(), zone: z.string(), market, count }), (cloud, { count, ...pool }) =>
    cloud.setCapacity(pool, count),
  ),
  limit: order(z.strictObject({ market, count }), (cloud, { market, count }) => cloud.setLimit(market, count)),
  price: order(
    z.strictObject({ type: z.string(), zone: z.string(), usdPerHour: z.number().positive() }),
    (cloud, { type, zone, usdPerHour }) => cloud.setPrice(type, zone, usdPerHour),
  ),
  settings: order(
    z.strictObject({ bootMs: count, visibleAfterMs: count, noticeMs: count, pageSize: count }),
    (cloud, settings) => void Object.assign(cloud.settings, settings),
  ),
  fault: order(
    z.strictObject({
      action: z.string().optional(),
      code: z.string(),
      message: z.string().optional(),
      status: z.int().optional(),
      times: z.int().optional(),
    }),
    (cloud, fault) => cloud.faults.order(JSON.parse(JSON.stringify(fault))),
  ),
  failBoots: order(z.strictObject({ count: z.int() }), (cloud, { count }) => cloud.faults.failBoots(count)),
  clearFaults: order(z.strictObject({}), (cloud) => cloud.faults.clear()),
  instances: order(z.strictObject({}), (cloud) =>
    [...cloud.instances.values()].map((instance) => ({
      ...instance.bill(),
      state: instance.state,
      pid: instance.pid,
      console: instance.consoleFile,
    })),
  ),
  bills: order(z.strictObject({}), (cloud) => cloud.bills()),
};

export async function controlled(cloud: TestCloud, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const reply = (status: number, body: unknown) =>
    response.writeHead(status, { 'Content-Type': 'application/json' }).end(`${JSON.stringify(body ?? {})}\n`);
  const name = request.url?.slice('/_test/'.length) ?? '';
  const known = orders[name];
  if (known === undefined)
    return void reply(404, { error: `no order ${name}; known: ${Object.keys(orders).join(', ')}` });
  try {
    const body: unknown = JSON.parse((await bodyOf(request)) || '{}');
    reply(200, await known.run(cloud, known.takes.parse(body)));
  } catch (error) {
    reply(400, { error: error instanceof Error ? error.message : String(error) });
  }
}
