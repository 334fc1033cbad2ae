/** An update computes the same from a batch in shards as from one in memory: laws for every batch and every plan. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { at } from '../../../core/at.ts';
import type {
  BackwardPass,
  ForwardOptions,
  OutputName,
  PackedBatch,
  PolicyEngine,
} from '../../../core/ports/policy.ts';
import type { Store } from '../../../core/ports/store.ts';
import { keys } from '../../../core/records/keys.ts';
import type { BatchRecord, LossSettings } from '../../../core/records/schema.ts';
import { openFolderStore } from '../../../infra/store/folder.ts';
import { arbitraryBatch } from '../../../models/batch.test-support.ts';
import type { BatchTensors } from '../../../models/batch-tensors.ts';
import type { RunState } from '../state/state.ts';
import { openBatch, storeBatch, wholeBatch } from './stored-batch.ts';
import type { ReadableBatch } from './stored-batch.ts';
import { applyBatch } from '../update/update.ts';

const runId = 'shards-0001';
const digest = '0'.repeat(64);
const origin = { iteration: 1, parentState: digest };
let folder: string;
let store: Store;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'petrel-shards-'));
  store = await openFolderStore(join(folder, 'store'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Every number that goes into an engine, in order. What comes out follows from it. */
class RecordingEngine
  implements Pick<PolicyEngine, 'lanes' | 'forward' | 'backward' | 'discard' | 'step' | 'zeroGrads'>
{
  readonly lanes: number;
  readonly calls: unknown[] = [];
  #handles = 0;

  constructor(lanes: number) {
    this.lanes = lanes;
  }

  async forward<Wanted extends OutputName>(passes: readonly PackedBatch[], options: ForwardOptions<Wanted>) {
    this.calls.push(['forward', structuredClone(passes), options]);
    return passes.map((packed) => {
      const values = Float32Array.from(packed.positions_P, (position, p) => {
        return -0.1 - ((at(packed.tokens_N, position) * 7 + (packed.targets_P?.[p] ?? 0) * 3 + p) % 11) / 10;
      });
      const outputs = Object.fromEntries(options.wants.map((name) => [name, values])) as never;
      return { handle: ++this.#handles, outputs };
    });
  }

  async backward(passes: readonly BackwardPass[]): Promise<void> {
    this.calls.push(['backward', structuredClone(passes)]);
  }

  async discard(handles: readonly number[]): Promise<void> {
    this.calls.push(['discard', handles]);
  }

  async step(settings: object) {
    this.calls.push(['step', settings]);
    return { gradNorm: this.calls.length, taken: true };
  }

  async zeroGrads(): Promise<void> {
    this.calls.push(['zeroGrads']);
  }
}

const loss = {
  kind: 'policy',
  ...{ lossMode: 'vanilla', clipRatioLow: 0.2, clipRatioHigh: 0.2, clipRatioC: 3, lossAggMode: 'token-mean' },
  ...{ entropyCoeff: 0.01, useKlLoss: false, klLossCoef: 0.1, klLossType: 'low_var_kl' },
  ...{ temperature: 1, lossScaleFactor: 6, positiveNllCoef: 0.1 },
} satisfies LossSettings;
const prime = {
  update: 'before' as const,
  ...{ lossType: 'ce', beta: 0.05, lambda: 0, useGroundTruth: false, granularity: 'token' },
  ...{ norm: 'batch_norm', rewardDpoCoef: 5, rewardGtCoef: 5 },
};
const distillation = {
  ...{ lossMode: 'forward_kl_topk', topk: 3, useTaskRewards: true, coef: 0.5, usePolicyGradient: false },
  ...{ policyLossMode: 'vanilla', clipRatio: 0.2, clipRatioLow: 0.2, clipRatioHigh: 0.2, clipRatioC: 3 },
};

/** The components that can be trained on such a batch. */
function lossesOf(batch: BatchTensors): Record<string, LossSettings> {
  const { refLogProbs_T, oldLogProbs_T, accuracies_S, teacherTopTokens_TK } = batch;
  return {
    actor: { ...loss, useKlLoss: refLogProbs_T !== undefined, ...(teacherTopTokens_TK && { distillation }) },
    critic: { ...loss, kind: 'value', constants: { clipRangeValue: 0.5 } },
    ...(oldLogProbs_T && refLogProbs_T && { logZ: { ...loss, kind: 'logZ', lossMode: 'flowrl' } }),
    ...(refLogProbs_T && accuracies_S && { rewardModel: { ...loss, kind: 'prime', prime } }),
  };
}

/** What an update of all components puts into its engines, and what it says; or why it cannot be. */
async function updated(batch: BatchTensors, contents: ReadableBatch, lanes: number): Promise<unknown> {
  const losses = lossesOf(batch);
  const rates = Array.from({ length: batch.stepOffsets_U1.length - 1 }, (_, s) => 0.1 * (s + 1));
  const counters = { cursor: 0, optimizerSteps: {}, badSteps: 0, controllers: {} };
  const record = {
    ...{ iteration: 1, oldLogProbs: batch.oldLogProbs_T === undefined ? 'on-policy' : 'stored', metrics: {} },
    ...{ before: counters, after: counters },
    components: Object.fromEntries(
      Object.entries(losses).map(([name, one]) => [name, { loss: one, optimizer: {}, learningRates: rates }]),
    ),
  } as unknown as BatchRecord;
  const engines = Object.fromEntries(Object.keys(losses).map((name) => [name, new RecordingEngine(lanes)]));
  const components = Object.fromEntries(Object.keys(losses).map((name) => [name, { stateDigest: digest }]));
  const state = {
    ...{ tag: { stateDigest: digest, components }, engines, markDirty: () => {} },
    seal: async () => ({ stateDigest: digest, components }),
  } as unknown as RunState;
  const said = await applyBatch(state, { record, digest }, contents, { tick: () => {} }).catch(String);
  return { said, calls: Object.entries(engines).map(([name, { calls }]) => [name, calls]) };
}

const anyUpdate = fc.record({
  made: arbitraryBatch,
  mostBytes: fc.integer({ min: 100, max: 1500 }),
  lanes: fc.integer({ min: 1, max: 3 }),
});

describe('an update of a batch in shards (seed 11)', () => {
  it('puts into its engines, and says, what it does with the whole batch', async () => {
    let divided = 0;
    await fc.assert(
      fc.asyncProperty(anyUpdate, async ({ made: { batch, epochs }, mostBytes, lanes }) => {
        const named = await storeBatch(store, runId, batch, origin, { epochs, mostBytes });
        divided += Number((named.shards?.length ?? 0) > 1);
        const contents = await openBatch(store, runId, named, 'test');
        expect(await updated(batch, contents, lanes)).toEqual(await updated(batch, wholeBatch(batch), lanes));
      }),
      { seed: 11, numRuns: 60 },
    );
    expect(divided).toBeGreaterThan(30);
  });

  it('begins only when all shards are there', async () => {
    const { batch, epochs } = at(fc.sample(arbitraryBatch, { seed: 11, numRuns: 1 }), 0);
    const named = await storeBatch(store, runId, batch, origin, { epochs, mostBytes: 100 });
    const lost = keys.blob(runId, at(named.shards ?? [], -1));
    await store.remove(lost);
    await expect(openBatch(store, runId, named, 'test')).rejects.toMatchObject({
      code: 'MissingBlob',
      where: lost,
    });
  });
});
