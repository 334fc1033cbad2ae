/** Scorers of lists: reward.reward_manager.name: batch. */
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import type { ScorerInput } from '../types.ts';
import { createScorerHost, type ScorerHost, type ScorerSpec } from './scorer-host.ts';

const hosts: ScorerHost[] = [];
afterEach(async () => {
  await Promise.all(hosts.splice(0).map((host) => host.close()));
});

describe.each(['lists.ts', 'lists.py'])('a scorer of lists, %s', (file) => {
  const path = fileURLToPath(new URL(`./fixtures/${file}`, import.meta.url));
  const spec: ScorerSpec = { type: 'module', path, exportName: 'compute_score', lists: true };

  function host(settings = {}): ScorerHost {
    const created = createScorerHost({ ...spec, settings }, { timeoutMs: 20_000, memoryMb: 96, concurrency: 2 });
    hosts.push(created);
    return created;
  }

  it('gets the samples of a call together, and its list is taken apart', async () => {
    const printed: string[] = [];
    const scoring = host({ strict: true }).score(responses('5', '6', '5'), { onPrint: (line) => printed.push(line) });
    const columns = { listed: 3, strict: true };
    const third = expect.closeTo(1 / 3, 12) as number;
    expect(await scoring).toEqual([
      { ok: true, score: third, columns },
      { ok: true, score: 0, columns },
      { ok: true, score: third, columns },
    ]);
    expect(printed).toEqual(['got 3']);
  });

  it('is not called for no samples', async () => {
    expect(await host().score([])).toEqual([]);
  });

  it.each([
    ['throws', 'throw', 'threw', /out of ideas/],
    ['ends its process', 'exit', 'crashed', /exit code 3/],
    ['returns one number', 'one number', 'bad-result', /must give a list, got 0.5/],
    ['returns too few scores', 'too few', 'bad-result', /got 2 responses and gave 1 scores/],
    ['returns no number for one', 'nan', 'bad-result', /of response 1: a scorer must give a finite number, got nan/i],
  ])('that %s fails all samples of its call, and no other call', async (_, response, code, reason) => {
    const shared = host();
    const [failed, scored] = await Promise.all([shared.score(responses('5', response)), shared.score(responses('5'))]);
    expect(failed).toHaveLength(2);
    for (const outcome of failed)
      expect(outcome).toMatchObject({ ok: false, code, reason: expect.stringMatching(reason) });
    expect(scored).toEqual([{ ok: true, score: 1, columns: { listed: 1 } }]);
  });
});

function responses(...texts: readonly string[]): ScorerInput[] {
  return texts.map((solutionStr) => ({ dataSource: 'test', solutionStr, groundTruth: '5' }));
}
