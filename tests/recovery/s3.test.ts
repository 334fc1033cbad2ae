// @module-tag long
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startSeaweed } from '../s3-servers.ts';
import type { S3Server } from '../s3-servers.ts';
import { Bed } from './bed.ts';
import { plansOf, seedsPerCycle } from './plan.ts';
import type { Plan } from './plan.ts';
import { playSeeds } from './play.ts';

/** A seed of each layout, from a cycle that the test with a folder does not use. */
const cycle = plansOf(seedsPerCycle() + 1, seedsPerCycle());
const plans = (['one', 'apart'] as const).flatMap((layout) =>
  cycle.filter((plan: Plan) => plan.layout === layout).slice(0, 1),
);

const folder = mkdtempSync(join(tmpdir(), 'petrel-s3-recovery-'));
let server: S3Server;
let beds = 0;
beforeAll(async () => {
  server = await startSeaweed(folder);
});
afterAll(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
});

describe('after any kill a run with its store in a bucket continues by itself to the same states and metrics', () => {
  playSeeds(plans, () => new Bed(server.use(`recovery-${++beds}`)));

  it('and these were two seeds', () => expect(plans).toHaveLength(2));
});
