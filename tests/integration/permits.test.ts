/** Permits over a real NATS server: two workers, and control processes that come and go. */
import { setMaxListeners } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { NatsConnection } from '@nats-io/nats-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import type { EndpointLimits } from '../../core/endpoint.ts';
import type { PermitTiming } from '../../core/wire/permits.ts';
import { connectNats } from '../../infra/nats/connection.ts';
import type { HasNats } from '../../infra/nats/connection.ts';
import { PermitHolder } from '../../infra/nats/permits/permit-holder.ts';
import { PermitOffice } from '../../infra/nats/permits/permit-office.ts';
import { startNats } from '../servers.ts';

const timing: PermitTiming = { leaseMs: 1_200, pollMs: 300, minuteMs: 2_000, silenceMs: 1_500 };
const folder = mkdtempSync(join(tmpdir(), 'petrel-permits-'));
const never = new AbortController().signal;
setMaxListeners(0, never);

let server: Awaited<ReturnType<typeof startNats>>;
let connections: NatsConnection[] = [];
let runs = 0;
let workers = 0;
let runId = '';
beforeAll(async () => void (server = await startNats(folder)));
beforeEach(() => void (runId = `run-${++runs}`));
afterEach(async () => {
  for (const nc of connections) await nc.close();
  connections = [];
});
afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function connected(name: string, target: HasNats = server): Promise<NatsConnection> {
  const nc = await connectNats(target, name);
  connections.push(nc);
  return nc;
}

/** A control process. */
async function office(log: (line: string) => void = () => {}): Promise<NatsConnection> {
  const nc = await connected('control');
  new PermitOffice(nc, { file: join(folder, 'permits.json'), timing, log }).open();
  await nc.flush();
  return nc;
}

async function worker(limits: EndpointLimits) {
  const from = { instance: 'here', worker: `w${++workers}` };
  const nc = await connected('worker', await server.asWorker(from, ['reward']));
  return { nc, permits: new PermitHolder(nc, { runId, from }, limits, timing) };
}

it('two workers together use no more permits than the limit, and everybody gets one', async () => {
  await office();
  const limits = { concurrent: 3 };
  const [one, other] = [await worker(limits), await worker(limits)];
  let [inUse, most, done] = [0, 0, 0];
  const request = async ({ permits }: typeof one) => {
    const permit = await permits.acquire(1, never);
    most = Math.max(most, ++inUse);
    await new Promise((resolve) => setImmediate(resolve));
    inUse -= 1;
    done += 1;
    permit.release();
  };
  await Promise.all(Array.from({ length: 60 }, (_, i) => request(i % 2 === 0 ? one : other)));
  expect([most, done, inUse]).toEqual([3, 60, 0]);
});

it('a minute holds the limit over both workers', async () => {
  await office();
  const limits = { concurrent: 9, rpm: 4 };
  const [one, other] = [await worker(limits), await worker(limits)];
  const times: number[] = [];
  const began = performance.now();
  const request = async ({ permits }: typeof one) => {
    const permit = await permits.acquire(1, never);
    times.push(performance.now());
    permit.release();
  };
  await Promise.all(Array.from({ length: 8 }, (_, i) => request(i % 2 === 0 ? one : other)));
  expect(times.filter((at) => at < began + timing.minuteMs).length).toBeLessThanOrEqual(4);
});

it('the permits of a worker that died are given to others after their lease', async () => {
  await office();
  const [dying, other] = [await worker({ concurrent: 1 }), await worker({ concurrent: 1 })];
  await dying.permits.acquire(1, never);
  const waiting = other.permits.acquire(1, never);
  await dying.nc.close();
  (await waiting).release();
});

it('a permit in use is kept for longer than its lease', async () => {
  await office();
  const [one, other] = [await worker({ concurrent: 1 }), await worker({ concurrent: 1 })];
  const permit = await one.permits.acquire(1, never);
  const enough = AbortSignal.timeout(2.5 * timing.leaseMs);
  await expect(other.permits.acquire(1, enough)).rejects.toMatchObject({ name: 'TimeoutError' });
  expect(permit.signal.aborted).toBe(false);
  permit.release();
  await other.permits.acquire(1, never);
});

it('a new control process gives nothing before the permits in use are known to it', async () => {
  const first = await office();
  const [one, other] = [await worker({ concurrent: 1 }), await worker({ concurrent: 1 })];
  const permit = await one.permits.acquire(1, never);
  await first.close();
  await office();
  let released = false;
  const next = other.permits.acquire(1, never).then(() => expect(released).toBe(true));
  // Longer than the lease: the new process has adopted the permit, and the worker has kept it.
  await expect(other.permits.acquire(1, AbortSignal.timeout(2 * timing.leaseMs))).rejects.toThrow();
  expect(permit.signal.aborted).toBe(false);
  released = true;
  permit.release();
  await next;
});

it('a new control process takes the minute before it for full', async () => {
  const first = await office();
  const { permits } = await worker({ concurrent: 1, rpm: 1_000 });
  (await permits.acquire(1, never)).release();
  const used = performance.now();
  await first.close();
  await office();
  (await permits.acquire(1, never)).release();
  expect(performance.now() - used).toBeGreaterThan(timing.minuteMs);
});

it('without a control process a request ends before its permit is given to another', async () => {
  const control = await office();
  const { permits } = await worker({ concurrent: 1 });
  const permit = await permits.acquire(1, never);
  const lost = new Promise<void>((resolve) => permit.signal.addEventListener('abort', () => resolve()));
  await control.close();
  await lost;
  expect(permit.signal.reason).toMatchObject({ code: 'PermitLost' });
  await expect(permits.acquire(1, never)).rejects.toMatchObject({ kind: 'retryable', code: 'NoPermits' });
});

it('nothing is given when the last use cannot be noted, and the log says why', async () => {
  const nc = await connected('control');
  const lines: string[] = [];
  const file = join(folder, 'no-such-folder', 'permits.json');
  new PermitOffice(nc, { file, timing, log: (line) => lines.push(line) }).open();
  await nc.flush();
  const { permits } = await worker({ concurrent: 1 });
  await expect(permits.acquire(1, AbortSignal.timeout(500))).rejects.toMatchObject({ name: 'TimeoutError' });
  expect(lines[0]).toMatch(/no permits for requests to endpoints: ENOENT/);
});
