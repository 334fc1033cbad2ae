/**
 * Followers of a run in a bucket that refuses for a moment: they say so once, go on, and end with the run's outcome.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { followMetrics } from '../../api/runs/follow-metrics.ts';
import { followRun } from '../../api/runs/follow.ts';
import { patientLog } from '../../api/runs/patient-store.ts';
import { waitForEnd } from '../../api/runs/wait.ts';
import type { Store } from '../../core/ports/store.ts';
import { RunLog } from '../../log/run/run-log.ts';
import { appendStatus } from '../../log/run/status.ts';
import { openS3Store } from '../../infra/store/s3/store.ts';
import { cliHome } from '../cli.ts';
import { startFaultProxy } from '../fault-proxy.ts';
import type { FaultProxy } from '../fault-proxy.ts';
import { buildRun } from '../run-builder.ts';
import type { BuiltRun } from '../run-builder.ts';
import { shortPatience, startSeaweed } from '../s3-servers.ts';
import type { S3Server } from '../s3-servers.ts';

const folder = mkdtempSync(join(tmpdir(), 'petrel-refusing-'));
const cli = cliHome();
let server: S3Server;
let proxy: FaultProxy;
let direct: Store;
/** The store as a follower sees it, through the proxy. */
let store: Store;
let runs = 0;
beforeAll(async () => {
  server = await startSeaweed(folder);
  proxy = await startFaultProxy(server.endpoint);
  const url = server.url('team/runs');
  direct = await openS3Store(url, await server.connect());
  store = await openS3Store(url, await server.connect({ endpoint: proxy.endpoint, patience: shortPatience }));
});
afterAll(async () => {
  await proxy?.close();
  await server?.stop();
  cli.remove();
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
});

const started = (): Promise<BuiltRun> =>
  buildRun(direct, { name: `r${++runs}`, done: 2, iterations: 3, status: { state: 'running' } });

/** Refuses every request until the run has completed, as a token does that has expired. */
function refuseUntilCompleted({ log }: BuiltRun, status: number, code: string) {
  let refused = 0;
  const rule = proxy.add({
    times: 6,
    fault: {
      type: 'own',
      handle: async (request, reply) => {
        request.resume();
        refused += 1;
        if (refused === 6) await appendStatus(log, { state: 'completed' }, new Date());
        reply.writeHead(status, { 'content-type': 'application/xml' });
        reply.end(request.method === 'HEAD' ? undefined : `<Error><Code>${code}</Code><Message>no</Message></Error>`);
        return 'answered';
      },
    },
  });
  return rule;
}

describe.each([
  [400, 'ExpiredToken'],
  [403, 'RequestTimeTooSkewed'],
  [403, 'AccessDenied'],
  [503, 'ServiceUnavailable'],
])('while the store answers %d %s', (status, code) => {
  it.each(['followRun', 'waitForEnd', 'followMetrics'] as const)(
    '%s waits, and ends with the run',
    async (follower) => {
      const run = await started();
      const said: string[] = [];
      const log = patientLog(new RunLog(store, run.log.runId), { pauseMs: 20, say: (line) => said.push(line) });
      const before = await run.log.status.newest();
      const rule = refuseUntilCompleted(run, status, code);
      const { signal } = new AbortController();
      if (follower === 'followRun')
        expect(await followRun(log, cli, { signal, onProgress: () => undefined })).toBe('completed');
      else if (follower === 'waitForEnd')
        expect(await waitForEnd(log, { ...before, n: before?.n ?? 0 } as never, new Promise(() => {}), signal)).toBe(
          'completed',
        );
      else await followMetrics(log, { last: 1, signal, take: () => undefined });
      expect(rule.fired).toBe(6);
      // These are retried below the follower, so it may have nothing to say.
      if (status === 503 || code === 'RequestTimeTooSkewed') return;
      expect(said.at(0)).toMatch(/^the store refuses, the run waits for it/);
      expect(said.join()).toContain(code);
      expect(said.filter((line) => line === 'the store answers again')).toHaveLength(said.length / 2);
    },
  );
});

it('a refused HEAD is named by the same request as a GET', async () => {
  const rule = proxy.add({
    times: 2,
    fault: {
      type: 'own',
      handle: async (request, reply) => {
        request.resume();
        reply.writeHead(400, { 'content-type': 'application/xml' });
        reply.end(
          request.method === 'HEAD' ? undefined : '<Error><Code>ExpiredToken</Code><Message>x</Message></Error>',
        );
        return 'answered';
      },
    },
  });
  await expect(store.head('runs/x')).rejects.toMatchObject({
    code: 'StoreDenied',
    message: expect.stringContaining('ExpiredToken'),
  });
  expect(rule.fired).toBe(2);
});

it('a HEAD that alone is refused is tried again', async () => {
  await direct.put('runs/y/blobs/z', new TextEncoder().encode('abc'));
  proxy.add({ fault: { type: 'answer', status: 403, code: 'x' }, when: ({ method }) => method === 'HEAD' });
  expect(await store.head('runs/y/blobs/z')).toBe(3);
});
