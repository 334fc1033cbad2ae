/** The verifier against runs that are in order, and against each thing that may be wrong with one. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Store } from '../../core/ports/store.ts';
import { parseRecipe } from '../../core/recipe/index.ts';
import { keys } from '../../core/records/keys.ts';
import { drawAt } from '../../core/rl/draws.ts';
import { lrFactor, resolveWarmupSteps } from '../../core/rl/lr-schedule.ts';
import { packageRoot } from '../../infra/home.ts';
import { openStore } from '../../infra/store/open.ts';
import { cliHome } from '../../tests/cli.ts';
import { buildRun } from '../../tests/run-builder.ts';
import { DrawRows } from './draw-rows.ts';
import { Forger } from './forge.test-support.ts';
import { rateOf } from './rates.ts';
import type { Inputs } from './records.ts';
import { verifyLedger } from './verify.ts';
import type { LedgerVerdict } from './verify.ts';

const folder = mkdtempSync(join(tmpdir(), 'petrel-ledger-'));
let store: Store;
beforeAll(async () => (store = await openStore(folder)));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('a run in order', () => {
  it.each(['rl', 'sft'] as const)('of kind %s has no faults', async (kind) => {
    const { runId } = await buildRun(store, { name: kind, kind, done: 4, checkpoints: [2, 4], evaluations: [0, 4] });
    const verdict = await verifyLedger(store, runId, { deep: true });
    expect(verdict.faults).toEqual([]);
    expect(verdict).toMatchObject({
      ok: true,
      state: 'completed',
      terms: 1,
      position: 4,
      iterations: 4,
      pending: false,
      draws: 8,
      checkpoints: [2, 4],
      evaluations: [0, 4],
      abandoned: [],
      retired: 0,
      unnamed: 0,
    });
    expect(verdict.fates).toEqual({ trained: 8, filtered: 0, failed: 0, surplus: 0, stale: 0, skipped: 0 });
    // One sample of each iteration of reinforcement learning could not be scored.
    expect([verdict.samplesTrained, verdict.samplesCompared]).toEqual(kind === 'rl' ? [12, 12] : [8, 8]);
  });

  it('reads fewer bytes when it reads headers only', async () => {
    const { runId } = await buildRun(store, { name: 'headers', done: 4, checkpoints: [4], evaluations: [4] });
    const [deep, shallow] = [await verifyLedger(store, runId, { deep: true }), await verifyLedger(store, runId)];
    expect(shallow.faults).toEqual([]);
    expect(shallow.bytes).toBeLessThan(deep.bytes);
    expect(shallow.samplesCompared).toBe(0);
  });

  it('that has only started, or waits for its update, is valid too', async () => {
    const { runId } = await buildRun(store, { name: 'begun', done: 0 });
    expect(await verifyLedger(store, runId)).toMatchObject({ ok: true, position: 0, draws: 0 });
    const waiting = await buildRun(store, { name: 'waiting', done: 2 });
    new Forger(store, waiting.runId).remove(keys.update(waiting.runId, 1, 2));
    expect(await verifyLedger(store, waiting.runId)).toMatchObject({
      ok: true,
      position: 1,
      pending: true,
      draws: 4,
      samplesTrained: 3,
    });
  });
});

describe('draws', () => {
  it('have the rows that training uses, for any seed and size', () => {
    const sizes = fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 2 ** 30 }));
    fc.assert(
      fc.property(
        sizes,
        fc.integer({ min: -(2 ** 40), max: 2 ** 40 }),
        fc.integer({ min: 0, max: 2 ** 44 }),
        fc.boolean(),
        (rows, seed, draw, shuffle) => {
          const stream = { rows, seed, shuffle };
          expect(new DrawRows(stream).rowOf(draw)).toBe(drawAt(stream, draw).row);
        },
      ),
      { numRuns: 400, seed: 42 },
    );
  });

  it('have the learning rates that training uses, for any schedule', () => {
    const optim = fc.record({
      lr: fc.constant(0.5),
      lr_scheduler_type: fc.constantFrom('constant', 'cosine', 'wsd'),
      lr_warmup_steps: fc.integer({ min: -1, max: 20 }),
      lr_warmup_steps_ratio: fc.constantFrom(0, 0.1, 0.33),
      min_lr_ratio: fc.constantFrom(0, 0.1),
      init_lr_ratio: fc.constantFrom(null, 0.2),
      num_cycles: fc.constantFrom(0.5, 1.5),
      stable_ratio: fc.constantFrom(0, 0.9),
      zero_indexed_step: fc.boolean(),
      total_training_steps: fc.constantFrom(null, 30),
    });
    fc.assert(
      fc.property(optim, fc.integer({ min: 0, max: 60 }), (one, step) => {
        const recipe = parseRecipe({
          model: { path: '.' },
          data: { train_files: 'x', train_batch_size: 6 },
          actor: { optim: one, ppo_mini_batch_size: 2, ppo_epochs: 2 },
          rollout: { n: 2 },
          trainer: { total_training_steps: 5 },
        });
        const { optim: o } = recipe.actor;
        const totalSteps = o.total_training_steps ?? 5 * 3 * 2;
        const schedule = {
          type: o.lr_scheduler_type,
          warmupSteps: resolveWarmupSteps(o.lr_warmup_steps, o.lr_warmup_steps_ratio, totalSteps),
          totalSteps,
          minLrRatio: o.min_lr_ratio,
          numCycles: o.num_cycles,
          initLrRatio: o.init_lr_ratio ?? undefined,
          zeroIndexedStep: o.zero_indexed_step,
          stableRatio: o.stable_ratio,
        };
        expect(rateOf({ recipe, inputs: { trainRows: 12 } as Inputs }, step)).toBeCloseTo(
          o.lr * lrFactor(schedule, step),
          12,
        );
      }),
      { numRuns: 300, seed: 42 },
    );
  });
});

describe('the verifier', () => {
  it('shares no code with what writes the records: it knows only the port of the store, and functions of one number', () => {
    const folderOfIt = join(packageRoot(), 'api/ledger');
    const sources = readdirSync(folderOfIt).filter((name) => name.endsWith('.ts') && !/\.test/.test(name));
    expect(sources.length).toBeGreaterThan(15);
    const imports = sources.flatMap((name) =>
      [...readFileSync(join(folderOfIt, name), 'utf8').matchAll(/^import (type )?.* from '([^']+)'/gm)].map(
        ([, type = '', from = '']) => `${type}${from}`,
      ),
    );
    const known =
      /^(type )?\.\/|^(type )?node:crypto$|^hash-wasm$|^type \.\.\/\.\.\/core\/ports\/store\.ts$|^\.\.\/\.\.\/core\/math\//;
    expect([...new Set(imports)].filter((one) => !known.test(one))).toEqual([]);
  });
});

describe('petrel ledger verify', () => {
  const cli = cliHome();
  afterAll(() => cli.remove());

  it('tells what it proved, and exits 0', async () => {
    const { runId } = await buildRun(await cli.store(), { done: 4, checkpoints: [4], evaluations: [4] });
    const { code, out } = await cli.petrel('ledger', 'verify', 'toy', '--deep');
    expect(code).toBe(0);
    expect(out).toContain(`${runId}, completed`);
    expect(out).toContain('8: 8 trained');
    expect(out).toContain('12 trained, 12 compared with their source token by token');
    expect(out).toContain('every sampled prompt was used exactly once or is listed as dropped');
  });

  it('names each fault, and exits 1', async () => {
    const { runId } = await buildRun(await cli.store(), { name: 'hurt', done: 4, checkpoints: [4], evaluations: [4] });
    const forger = new Forger(await cli.store(), runId);
    await forger.batch(2, ({ draws }) => void (draws[0]!.row = 1));
    const { code, out } = await cli.petrel('ledger', 'verify', runId);
    expect(code).toBe(1);
    expect(out).toContain(`FAULT ${keys.batch(runId, 1, 2)}\n  expected row of draw 2 0\n  found    1\n`);
    expect(out).toContain('1 fault');
    expect((await cli.petrel('ledger', 'verify', runId, '--json')).json<LedgerVerdict>().faults).toHaveLength(1);
  });

  it('reads a run whose first record is damaged, and knows no run that was deleted', async () => {
    const { runId } = await buildRun(await cli.store(), { name: 'claim', done: 1 });
    const store = await cli.store();
    await store.put(keys.run(runId), new TextEncoder().encode('{'));
    expect((await cli.petrel('ledger', 'verify', 'claim', '--json')).json<LedgerVerdict>().faults).toMatchObject([
      { key: keys.run(runId), found: 'not JSON' },
    ]);
    await store.put(keys.tombstone(runId), new TextEncoder().encode('{}'));
    await expect(cli.petrel('ledger', 'verify', 'claim')).rejects.toMatchObject({ code: expect.any(String) });
  });
});
