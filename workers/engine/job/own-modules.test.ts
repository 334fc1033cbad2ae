import { afterEach, describe, expect, it } from 'vitest';
import type { OwnModuleInput } from '../../../core/records/schema.ts';
import type { PolicyLossConfig } from '../../../core/rl/policy-loss/index.ts';
import { trialAdvantageBatch, trialLossInput } from '../../../core/rl/own/trial-batch.ts';
import type { AdvantageInput } from '../../../core/wire/jobs/index.ts';
import { compileOwnModule } from '../../../infra/own-modules/compile.ts';
import { putBlob } from '../../../log/objects/blobs.ts';
import { MemoryStore } from '../../../tests/memory-store.ts';
import { OwnModules } from './own-modules.ts';

const runId = 'toy-20260102-030405-abcd';
const store = new MemoryStore();
const config: PolicyLossConfig = {
  lossAggMode: 'token-mean',
  totals: {},
  clipRatio: 0.2,
  clipRatioC: 3,
  seed: [1, 0, 0],
};
const input = trialLossInput(1);

let modules = new OwnModules();
afterEach(async () => {
  await modules.close();
  modules = new OwnModules();
});

/** A module in the store of the run. */
async function stored(text: string): Promise<OwnModuleInput> {
  const code = await compileOwnModule(new TextEncoder().encode(text), 'mine.ts');
  return { module: await putBlob(store, runId, code), fileName: 'mine.ts', needs: [], deterministic: true };
}
const lossOf = (body: string) =>
  `export const loss = { scope: 'token', needs: [], compute({ logProb_T }) { ${body} } };`;
const constant = (value: number) =>
  stored(lossOf(`const loss_T = logProb_T.map(() => ${value}); return { loss_T, dLoss_T: loss_T };`));

describe('the loss of a run', () => {
  it('is that of its batch record, also when the next record names another one', async () => {
    const loss = modules.lossIn(store);
    const [two, three] = [await constant(2), await constant(3)];
    const losses = [];
    for (const own of [two, two, three, two]) losses.push((await loss(runId, own, input, config)).loss);
    expect(losses.map((value) => Math.round(value * 1e9) / 1e9)).toEqual([2, 2, 3, 2]);
  });

  it('that fails pauses the run, which says what to type', async () => {
    const own = await stored(lossOf("throw new Error('no idea');"));
    await expect(modules.lossIn(store)(runId, own, input, config)).rejects.toMatchObject({
      kind: 'pause',
      code: 'OwnModuleFailed',
      message: './mine.ts: Error: no idea',
      where: './mine.ts:1:81',
      hint: `fix mine.ts, then run in its folder: petrel resume ${runId} actor.policy_loss.loss_mode=./mine.ts --accept`,
    });
  });

  it('that never returns pauses the run after its time; the next call gets a new thread', async () => {
    modules = new OwnModules({ loadMs: 60_000, callMs: 3000, heapMb: 64 });
    const own = await stored(lossOf('for (;;) {}'));
    const loss = modules.lossIn(store);
    for (let i = 0; i < 2; i++)
      await expect(loss(runId, own, input, config)).rejects.toMatchObject({
        kind: 'pause',
        message: './mine.ts: compute did not return within 3 s',
      });
    expect((await loss(runId, await constant(1), input, config)).loss).toBeCloseTo(1, 12);
  });

  it('is not called for log-probs that are not finite: the step is skipped, as with a built-in loss', async () => {
    const own = await stored(lossOf("throw new Error('called');"));
    const valid = Array.from(input.rows.mask_T).indexOf(1);
    const broken = { ...input, logProb_T: Float64Array.from(input.logProb_T, (x, t) => (t === valid ? NaN : x)) };
    expect((await modules.lossIn(store)(runId, own, broken, config)).loss).toBeNaN();
  });

  it('that is lost is damage of the store, and not a fault of the module', async () => {
    const own = { ...(await constant(5)), module: 'f'.repeat(64) };
    await expect(modules.lossIn(store)(runId, own, input, config)).rejects.toMatchObject({ code: 'MissingBlob' });
  });
});

describe('the estimator of a run', () => {
  const jobOf = (estimator: OwnModuleInput | undefined) =>
    ({ inputs: { ...(estimator && { estimator }) }, algorithm: { advEstimator: 'grpo' } }) as unknown as AdvantageInput;

  it('is the module where the inputs name one, else the built-in one', async () => {
    const own = await stored(
      'export const estimator = { needs: [], compute: ({ scores_S }) => ({ advantages_S: scores_S.map(() => 7) }) };',
    );
    const batch = trialAdvantageBatch(4);
    const of = async (estimator: OwnModuleInput | undefined) =>
      (await modules.estimator(store, runId, jobOf(estimator)).compute(batch, {})).advantages_T;
    expect(new Set(await of(own))).toEqual(new Set([0, 7]));
    expect(await of(undefined)).not.toEqual(await of(own));
  });

  it('that returns too few values pauses the run', async () => {
    const own = await stored(
      'export const estimator = { needs: [], compute: () => ({ advantages_S: new Float64Array(2) }) };',
    );
    const estimator = modules.estimator(store, runId, jobOf(own));
    await expect(estimator.compute(trialAdvantageBatch(0), {})).rejects.toMatchObject({
      code: 'OwnModuleFailed',
      message: './mine.ts: advantages_S: expected 5 values, got 2',
      hint: expect.stringContaining('algorithm.adv_estimator=./mine.ts --accept') as string,
    });
  });
});
