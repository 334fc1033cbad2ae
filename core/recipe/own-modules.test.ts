import { describe, expect, it } from 'vitest';
import type { OwnModuleInput } from '../records/schema.ts';
import { ownModuleIssues, ownModulePath } from './own-modules.ts';
import { parseRecipe } from './parse.ts';
import { runIssues } from './runnable.ts';

const recipe = (keys: object = {}) =>
  parseRecipe({
    model: { path: 'm' },
    data: { train_files: 'd' },
    actor: { policy_loss: { loss_mode: './loss.ts' } },
    algorithm: { adv_estimator: './advantage.ts' },
    ...keys,
  });
const module = (needs: readonly string[], deterministic = true): OwnModuleInput => ({
  module: 'a'.repeat(64),
  fileName: 'mine.ts',
  needs: [...needs],
  deterministic,
});
const actor = (keys: object) => ({ actor: { policy_loss: { loss_mode: './loss.ts' }, ...keys } });

describe('a recipe that names modules of the user’s own', () => {
  it('can be run, and is supervised without them', () => {
    expect(runIssues(recipe())).toEqual([]);
    expect(ownModulePath(recipe(), 'loss')).toBe('./loss.ts');
    expect(ownModulePath(recipe({ kind: 'sft' }), 'loss')).toBeUndefined();
  });

  it.each([
    ['refLogProbs', 'loss', {}, actor({ use_kl_loss: true }), 'actor.use_kl_loss: true'],
    ['values', 'loss', { algorithm: { adv_estimator: 'grpo' } }, { algorithm: { adv_estimator: 'gae' } }, 'gae'],
    ['values', 'estimator', {}, { critic: { enable: true } }, 'critic.enable: true'],
    ['groupsOfTwo', 'estimator', { rollout: { n: 1 } }, { rollout: { n: 2 } }, 'rollout.n=8'],
  ] as const)('must give what they need: %s of the %s', (need, kind, without, given, hint) => {
    const modules = { [kind]: module([need]) };
    const [issue, ...others] = ownModuleIssues(recipe(without), modules);
    expect(others).toEqual([]);
    expect(issue?.message).toMatch(new RegExp(`^\\./mine\\.ts needs .*\\(${need}\\)$`));
    expect(issue?.hint).toContain(hint);
    expect(ownModuleIssues(recipe(given), modules)).toEqual([]);
  });

  it.each([
    ['loss', true, 1],
    ['loss', 'replay', 1],
    ['loss', false, 0],
    ['estimator', true, 1],
    // Advantages are recorded, so a replay does not need the estimator.
    ['estimator', 'replay', 0],
  ] as const)('refuses a %s that is not declared deterministic where deterministic is %s: %i', (kind, value, count) => {
    const issues = ownModuleIssues(recipe({ deterministic: value }), { [kind]: module([], false) });
    expect(issues).toHaveLength(count);
    expect(ownModuleIssues(recipe({ deterministic: value }), { [kind]: module([]) })).toEqual([]);
  });
});
