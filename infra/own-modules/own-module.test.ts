import { afterEach, describe, expect, it, vi } from 'vitest';
import type { OwnModuleKind } from '../../core/recipe/own-modules.ts';
import type { TrialSettings } from '../../core/rl/own/check.ts';
import { ownEstimatorCall } from '../../core/rl/own/estimator.ts';
import { ownLossCall } from '../../core/rl/own/loss.ts';
import { trialAdvantageBatch, trialLossInput } from '../../core/rl/own/trial-batch.ts';
import { compileOwnModule } from './compile.ts';
import { OwnModule, OwnModuleError } from './own-module.ts';
import type { OwnModuleLimits } from './own-module.ts';

const opened: OwnModule[] = [];
afterEach(() => Promise.all(opened.splice(0).map((module) => module.close())));

async function open(
  kind: OwnModuleKind,
  text: string,
  fileName = 'mine.ts',
  limits: Partial<OwnModuleLimits> = {},
): Promise<OwnModule> {
  const source = await compileOwnModule(new TextEncoder().encode(text), fileName);
  const module = await OwnModule.open(
    { kind, fileName, source },
    { loadMs: 60_000, callMs: 60_000, heapMb: 64, ...limits },
  );
  opened.push(module);
  return module;
}

const settings: TrialSettings = { lossAggMode: 'token-mean', clipRatio: 0.2, clipRatioC: 3 };
const config = { ...settings, totals: {}, seed: [1, 2] };
const lossOf = (body: string, fields = '') => `export const loss = {
  scope: 'token', needs: [], ${fields}
  compute({ logProb_T }, { advantages_T }) {
${body}
  },
};`;
const call = ownLossCall([], trialLossInput(1), config);
/** Policy gradient: −A · log π. */
const good = `return { loss_T: logProb_T.map((x, t) => -x * advantages_T[t]), dLoss_T: advantages_T.map((a) => -a) };`;

/** The error of calling a loss with this body. */
async function failure(body: string, limits?: Partial<OwnModuleLimits>): Promise<OwnModuleError> {
  const module = await open('loss', lossOf(body), 'mine.ts', limits);
  return module.loss(call).then(
    () => Promise.reject(new Error('it did not fail')),
    (error: unknown) => {
      expect(error).toBeInstanceOf(OwnModuleError);
      return error as OwnModuleError;
    },
  );
}

describe('a policy loss of the user’s own', () => {
  it('is called with what it needs, again and again', async () => {
    const module = await open('loss', lossOf(good));
    expect(module.facts).toEqual({ needs: [], deterministic: false });
    const [first, second] = [await module.loss(call), await module.loss(call)];
    expect(first).toEqual(second);
    expect(first.dLogProb_T).toHaveLength(call.logProb_T.length);
    expect(await module.checkLoss(settings)).toMatchObject({ batches: 8, kinks: 0, disagreeing: 0 });
  });

  it('may be JavaScript, a default export, and declare what it is', async () => {
    const text = lossOf(good, "deterministic: true, straightThrough: 'rounding',").replace(
      'export const loss =',
      'export default',
    );
    const module = await open('loss', text, 'mine.mjs');
    expect(module.facts).toEqual({ needs: [], deterministic: true, straightThrough: 'rounding' });
  });

  it('that throws is told with its line, and can be called again', async () => {
    const module = await open('loss', lossOf('    if (advantages_T.length > 0) throw new RangeError("out of ideas");'));
    for (let i = 0; i < 2; i++)
      await expect(module.loss(call)).rejects.toMatchObject({
        message: './mine.ts: RangeError: out of ideas',
        where: './mine.ts:4:40',
      });
    expect(module.isAlive).toBe(true);
  });

  it.each([
    ['no number', 'return { loss_T: logProb_T.map(() => NaN), dLoss_T: advantages_T };', /loss_T\[\d+\] is NaN/],
    [
      'an infinity',
      'return { loss_T: logProb_T, dLoss_T: advantages_T.map((a) => a / 0) };',
      /dLoss_T\[\d+\] is -?Inf/,
    ],
    [
      'too few values',
      'return { loss_T: logProb_T.slice(1), dLoss_T: advantages_T };',
      /loss_T: expected \d+ values, got/,
    ],
    ['no gradient', 'return { loss_T: logProb_T };', /dLoss_T: expected a Float64Array, got nothing/],
    ['nothing', 'return;', /expected an object, got undefined/],
    ['a promise', 'return Promise.reject(new Error("later"));', /got a promise/],
    [
      'an odd metric',
      `const metrics = { 'a b': 1 }; ${good.replace('};', ', metrics };')}`,
      /letters, digits and _, got "a b"/,
    ],
  ])('that returns %s is refused', async (_, body, message) => {
    expect((await failure(body)).message).toMatch(message);
  });

  it('that never returns is ended after its time', async () => {
    const { message, where } = await failure('for (;;) {}', { callMs: 1500 });
    expect({ message, where }).toEqual({
      message: './mine.ts: compute did not return within 1.5 s',
      where: './mine.ts',
    });
  });

  it('that fills the memory or exits ends its thread, and not the process', async () => {
    expect((await failure('const all = []; for (;;) all.push({ a: [1, 2, 3] });')).message).toMatch(/more than 64 MiB/);
    expect((await failure('process.exit(3);')).message).toMatch(/ended its thread/);
  });

  it('has few new objects at a time: a full heap must have room for them until the thread is ended', async () => {
    const limits = 'throw new Error(JSON.stringify(resourceLimits));';
    const module = await open('loss', `import { resourceLimits } from 'node:worker_threads'; ${lossOf(limits)}`);
    const error = await module.loss(call).catch((thrown: unknown) => thrown as OwnModuleError);
    expect(String(error)).toContain('"maxYoungGenerationSizeMb":8,"maxOldGenerationSizeMb":64');
  });

  it('sees none of the variables of the process', async () => {
    const body = 'throw new Error(Object.keys(process.env).join(" ") || "none");';
    expect((await failure(body)).message).toContain('none');
  });

  it('may print: to the standard error of the process', async () => {
    const written = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    const module = await open('loss', lossOf(`console.log('a line of mine'); ${good}`));
    await module.loss(call);
    await expect.poll(() => written.mock.calls.map(([text]) => String(text)).join('')).toContain('a line of mine');
    written.mockRestore();
  });

  it('may write to its copies of the numbers', async () => {
    const module = await open('loss', lossOf(`logProb_T.fill(7); advantages_T.fill(7); ${good}`));
    const before = Float64Array.from(call.logProb_T);
    await module.loss(call);
    expect(Float64Array.from(call.logProb_T)).toEqual(before);
  });
});

describe('a module that cannot be loaded', () => {
  it.each([
    ['a wrong export', 'export const los = {};', 'expected an export named loss, or a default one, got los', undefined],
    [
      'no compute',
      'export const loss = { scope: "token", needs: [] };',
      'loss.compute: expected a function',
      undefined,
    ],
    [
      'a wide scope',
      lossOf(good).replace("'token'", "'group'"),
      "loss.scope: expected 'token' or 'sequence', got group",
      undefined,
    ],
    ['a wrong need', lossOf(good).replace('[]', "['refLogProb']"), 'loss.needs: expected some of', undefined],
    ['wrong syntax', 'export const loss: = 3;', 'SyntaxError', './mine.ts:1:20'],
    ['an import', 'import { x } from "./other.ts"; export const loss = x;', 'it imports other.ts', undefined],
    ['an error', '\nexport const loss = undefined.x;', 'TypeError: Cannot read properties', './mine.ts:2:31'],
  ])('for %s says so', async (_, text, message, where) => {
    const error = await open('loss', text).catch((thrown: unknown) => thrown as OwnModuleError);
    expect(error).toBeInstanceOf(OwnModuleError);
    if (!(error instanceof OwnModuleError)) return;
    expect(error.message).toContain(message);
    expect(error.where).toBe(where ?? './mine.ts');
  });

  it('names the need that was meant', async () => {
    const text = lossOf(good).replace('[]', "['refLogProb']");
    await expect(open('loss', text)).rejects.toMatchObject({ hint: 'did you mean refLogProbs?' });
  });

  it('for an endless loop while it is loaded ends after its time', async () => {
    await expect(open('loss', 'for (;;) {}', 'mine.ts', { loadMs: 1500 })).rejects.toThrow(
      'it was not loaded within 1.5 s',
    );
  });
});

describe('an advantage estimator of the user’s own', () => {
  const estimatorOf = (body: string) =>
    `export const estimator = { needs: [], compute({ scores_S, rows }) { ${body} } };`;
  const estimatorCall = ownEstimatorCall([], trialAdvantageBatch(1), { gamma: 1, lam: 1 });

  it('gives one advantage per response', async () => {
    const module = await open('estimator', estimatorOf('return { advantages_S: scores_S.map((s) => s - 0.25) };'));
    const { advantages_T } = await module.advantages(estimatorCall);
    expect(new Set(advantages_T)).toEqual(new Set([0, 0.75]));
    await module.checkEstimator({ gamma: 1, lam: 1, normAdvByStdInGrpo: true });
  });

  it.each([
    [
      'too many advantages',
      'return { advantages_S: new Float64Array(99) };',
      /advantages_S: expected 5 values, got 99/,
    ],
    ['no advantages', 'return {};', /advantages_T: expected a Float64Array, got nothing/],
    ['other numbers each time', 'return { advantages_S: scores_S.map(() => Math.random()) };', /different results/],
  ])('with %s is refused by its check', async (_, body, message) => {
    const module = await open('estimator', estimatorOf(body));
    await expect(module.checkEstimator({ gamma: 1, lam: 1, normAdvByStdInGrpo: true })).rejects.toThrow(message);
  });
});
