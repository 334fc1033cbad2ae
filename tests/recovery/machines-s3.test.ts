// @module-tag long
/** Machines that are cut off from NATS and from the store, and go on with their job without reaching anybody. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe } from 'vitest';
import { startSeaweed } from '../s3-servers.ts';
import type { S3Server } from '../s3-servers.ts';
import { MachineBed } from './machine-bed.ts';
import { machinePlan } from './machine-plan.ts';
import { playMachineSeeds } from './machine-tests.ts';

/** The first seed of each cut whose job must be done again. */
const listed = Array.from({ length: 60 }, (_, i) => machinePlan(i + 1)).filter(({ place }) => place.again);
const plans = (['cut off and back', 'cut off for long and back', 'cut off for good'] as const).flatMap((cut) =>
  listed.filter(({ fault }) => fault === cut).slice(0, 1),
);

const folder = mkdtempSync(join(tmpdir(), 'petrel-s3-machines-'));
let server: S3Server;
let beds = 0;
beforeAll(async () => {
  server = await startSeaweed(folder);
});
afterAll(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
});

describe('a run with its store in a bucket goes on when a machine is cut off from both', () => {
  playMachineSeeds(plans, () => new MachineBed(server.use(`machines-${++beds}`)));
});

describe('a run whose machines are behind a round trip of 80 ms that loses packets ends in the same bits', () => {
  const far = listed.filter(({ fault }) => fault === 'killed' || fault === 'cut off and back').slice(0, 2);
  playMachineSeeds(far, () => new MachineBed(server.use(`machines-${++beds}`), { delayMs: 40, loss: 0.01 }));
});
