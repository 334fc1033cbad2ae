// @module-tag long
/** Two control machines of one stack (tests/two-control-machines.ts), with a bucket as their store. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startSeaweed } from '../s3-servers.ts';
import type { S3Server } from '../s3-servers.ts';
import { TwoControlMachines, vanish } from '../two-control-machines.ts';

const folder = mkdtempSync(join(tmpdir(), 'petrel-two-machines-'));
let server: S3Server;
let machines: TwoControlMachines;
beforeAll(async () => {
  server = await startSeaweed(folder);
  machines = new TwoControlMachines(server.use('team'));
  await machines.up();
});
afterAll(async () => {
  await machines?.remove();
  await server?.stop();
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
});

it('when one vanishes with all its processes, its run goes on at the other and ends with the same bits (seed 42)', async () => {
  const { loop, first, here } = machines;
  const whole = await machines.startedThere('whole');
  await loop.passes(whole, 1);
  await here('stop', whole.runId, '--wait');
  await here('resume', whole.runId, '--wait');
  const run = await machines.startedThere('vanished');
  await loop.passes(run, 2);
  await vanish(first.home);
  await loop.reaches(run, 'completed');
  expect(await loop.states(run)).toEqual(await loop.states(whole));
});
