import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startSeaweed } from '../s3-servers.ts';
import type { S3Server } from '../s3-servers.ts';
import { Bed } from './bed.ts';
import { planTitle, plansOf, seedsPerCycle } from './plan.ts';
import type { Plan } from './plan.ts';
import { runSeed } from './seed.ts';

/** Four seeds of either layout, of a cycle that the folder's test does not play. */
const cycle = plansOf(seedsPerCycle() + 1, seedsPerCycle());
const plans = (['one', 'apart'] as const).flatMap((layout) => cycle.filter((plan: Plan) => plan.layout === layout).slice(0, 4));

/** For machines that do much else: a seed that is stuck fails by its own waits. */
const patience = 600_000;

const folder = mkdtempSync(join(tmpdir(), 'petrel-s3-recovery-'));
let server: S3Server;
let bed: Bed;
let beds = 0;
const newBed = () => new Bed(server.use(`recovery-${++beds}`));
beforeAll(async () => {
  server = await startSeaweed(folder);
  bed = newBed();
});
afterAll(async () => {
  await bed?.remove();
  await server?.stop();
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
});

describe('whatever is killed, a run whose store is a bucket goes on by itself to the same states and metrics', () => {
  it.each(plans.map((plan) => [planTitle(plan), plan] as const))('%s', async (_, plan) => {
    try {
      const { blows } = await runSeed(bed, plan);
      expect(blows).toHaveLength(plan.strikes.length);
    } catch (error) {
      await bed.remove();
      bed = newBed();
      throw error;
    }
  }, patience);

  it('and these were eight seeds', () => expect(plans).toHaveLength(8));
});
