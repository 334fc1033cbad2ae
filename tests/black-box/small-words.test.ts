/** What petrel says about invalid names, about errors of other runs, and about forks that have nothing left to do. */
import { afterAll, describe, expect, it } from 'vitest';
import { PetrelUser } from './petrel.ts';

const user = PetrelUser.onLentStack();
afterAll(() => user.remove());

describe('a name that a run cannot have', () => {
  it('is refused with the nearest valid one, in a command that works', async () => {
    user.recipe();
    const refused = await user.petrel('run', 'recipe.yaml', '--name', 'My_Run 2');
    expect(refused.code).toBe(2);
    const [, option = '', name = ''] = /^ {2}(--name) (\S+)$/m.exec(refused.err) ?? [];
    expect([option, name]).toEqual(['--name', 'my-run-2']);
    expect((await user.petrel('plan', 'recipe.yaml', `name=${name}`)).code).toBe(0);

    user.recipe('named.yaml', { name: '_GSM8K_' });
    expect((await user.petrel('plan', 'named.yaml')).err).toMatch(/^ {2}name: gsm8k$/m);
  });
});

describe('an error of one run', () => {
  it("is not shown on the worker's row for another run", { tags: ['long'] }, async () => {
    user.write(
      'throws.mjs',
      'export function computeScore({ solutionStr, groundTruth }) { if (solutionStr !== groundTruth) throw new Error("no idea"); return 1; }\n',
    );
    const reward = { scorer: null, custom_reward_function: { path: './throws.mjs' } };
    user.recipe('throws.yaml', { reward });
    await user.petrel('run', 'throws.yaml', '--name', 'throws', '--wait', '--json');
    user.recipe();
    const run = await user.petrel('run', 'recipe.yaml', '--name', 'fine', '--wait', '--json');
    expect(run.code, run.err).toBe(0);
    expect((await user.petrel('status', 'throws')).out).toContain('no idea');
    expect((await user.petrel('status', 'fine')).out).not.toContain('no idea');
  });
});

describe('a fork of the last iteration', () => {
  it('says that nothing is left to do, and what to type', async () => {
    user.recipe();
    const run = await user.petrel('run', 'recipe.yaml', '--name', 'whole', '--wait', '--json');
    expect(run.code, run.err).toBe(0);
    const forked = await user.petrel('fork', 'whole', '--name', 'again');
    expect(forked.err).toContain('nothing is left to do: the fork begins after iteration 2 of 2');
    const words = /(fork \S+ --from 2 trainer\.total_training_steps=4)/.exec(forked.err)?.[1] ?? '';
    const longer = await user.petrel(...words.split(' '), '--name', 'longer', '--wait', '--json');
    expect(longer.code, longer.err).toBe(0);
    expect(longer.json<{ iteration: number }>().iteration).toBe(4);
  });
});
