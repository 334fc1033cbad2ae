// @module-tag long
/** Deterministic runs with an arithmetic that no build has any longer. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { KeptStore } from './kept-store.ts';
import { PetrelUser } from './petrel.ts';

describe('a store whose deterministic runs have an arithmetic that no build has', () => {
  const user = new PetrelUser();
  let store: KeptStore;
  beforeAll(() => {
    store = new KeptStore(user, '5ad3543-other-arithmetic');
  });
  afterAll(() => user.remove());

  const termOf = (name: string, term: number): Record<string, unknown> => record(name, `${term}/term.json`);
  const record = (name: string, path: string): Record<string, unknown> =>
    JSON.parse(readFileSync(join(store.run(name), 'terms', path), 'utf8')) as Record<string, unknown>;
  const jobs = (name: string, stage: string): string[] =>
    readdirSync(join(store.run(name), 'results')).filter((result) => result.startsWith(stage));

  async function resume(name: string, ...more: readonly string[]): Promise<string> {
    const resumed = await user.petrel('resume', name, '--wait', ...more);
    expect(resumed.code, resumed.err).toBe(0);
    expect(await store.status(name)).toMatchObject({ state: 'completed' });
    return resumed.err;
  }

  it('a run that was killed applies the batches after its newest checkpoint again', async () => {
    const [rollouts, before] = [jobs('grpo-killed', 'rollout'), store.states('grpo-killed')];
    const said = await resume('grpo-killed');
    expect(said).toContain(
      'continues after iteration 2 in a new term and applies the batches of iterations 3 to 4 again',
    );
    expect(termOf('grpo-killed', 2)).toMatchObject({
      reason: 'engine',
      parent: { term: 1, position: 2 },
      adopts: { term: 1, until: 4 },
      components: { actor: { profile: { deterministic: true, compute: 'fp32' } } },
    });
    for (const k of [3, 4]) {
      const [made, again] = [record('grpo-killed', `1/${k}/batch.json`), record('grpo-killed', `2/${k}/batch.json`)];
      expect(again).toMatchObject({ draws: made['draws'], tensors: made['tensors'], results: made['results'] });
    }
    // The other arithmetic gives other bits. Iterations 3 and 4 were not sampled again.
    expect(store.states('grpo-killed')[2]).toBe(before[2]);
    expect(store.states('grpo-killed')[3]).not.toBe(before[3]);
    expect(jobs('grpo-killed', 'rollout')).toEqual(expect.arrayContaining(rollouts));
    const samplingOf = (k: number) => record('grpo-killed', `2/${k}/batch.json`)['results'] as string[];
    const fresh = jobs('grpo-killed', 'rollout').filter((job) => !rollouts.includes(job));
    const validations = (record('grpo-killed', '2/3/eval.json')['results'] as string[])
      .concat(record('grpo-killed', '2/6/eval.json')['results'] as string[])
      .filter((job) => job.startsWith('rollout'));
    const training = [...samplingOf(5), ...samplingOf(6)].filter((job) => job.startsWith('rollout'));
    expect(fresh.map((job) => job.replace('.json', '')).sort()).toEqual([...training, ...validations].sort());
  });

  it('a run that was stopped, with more iterations, has nothing to apply again', async () => {
    await resume('grpo-stopped', 'trainer.total_training_steps=8', '--accept');
    const term = termOf('grpo-stopped', 2);
    expect(term).toMatchObject({ parent: { position: 3 } });
    expect(term['adopts']).toBeUndefined();
    expect(term['reason']).toMatch(/^engine; changed recipe/);
  });

  it('a redo from an iteration between two checkpoints applies what leads there again', async () => {
    await resume('grpo-completed', '--from', '5', '--accept');
    expect(termOf('grpo-completed', 2)).toMatchObject({
      reason: 'engine; redo from iteration 5',
      parent: { term: 1, position: 4 },
      adopts: { term: 1, until: 5 },
    });
  });

  it.each(['grpo-killed', 'grpo-stopped', 'grpo-completed'])('%s: the ledger is verified', (name) =>
    store.verify(name),
  );
});

describe('the same store on another stack', () => {
  const user = new PetrelUser();
  afterAll(() => user.remove());

  it('a run is taken over and continues with this machine’s arithmetic', async () => {
    const store = new KeptStore(user, '5ad3543-other-arithmetic', 'another-stack');
    const resumed = await user.petrel('resume', 'grpo-killed', '--accept', '--wait');
    expect(resumed.err).toContain('a new term: taken over from kept-a');
    expect(resumed.err).toContain('applies the batches of iterations 3 to 4 again');
    expect(resumed.code, resumed.err).toBe(0);
    await store.verify('grpo-killed');
  });
});
