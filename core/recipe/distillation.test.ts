import { describe, expect, it } from 'vitest';
import { runIssues } from './runnable.ts';
import { recipeSchema } from './schema.ts';
import type { RecipeInput } from './schema.ts';
import type { Tree } from './merge.ts';

const pathsOf = (distillation: Tree, more: Tree = {}): string[] =>
  runIssues(
    recipeSchema.parse({
      model: { path: 'm' },
      data: { train_files: 'd' },
      ...more,
      distillation: { enabled: true, teacher_model: { model_path: 't' }, ...distillation },
    } as RecipeInput),
  )
    .map(({ path }) => path)
    .filter((path) => path.startsWith('distillation'));

describe('a recipe with a teacher is refused', () => {
  it.each<[string, Tree, Tree] | [string, Tree]>([
    ['teacher_model.model_path', { teacher_model: { model_path: null } }],
    ['enabled', {}, { kind: 'sft' }],
    ['distillation_loss.use_policy_gradient', { distillation_loss: { loss_mode: 'k1' } }],
    ['distillation_loss.use_policy_gradient', { distillation_loss: { loss_mode: 'kl' } }],
    [
      'distillation_loss.use_policy_gradient',
      { distillation_loss: { loss_mode: 'forward_kl_topk', use_policy_gradient: true } },
    ],
    [
      'distillation_loss.policy_loss_mode',
      { distillation_loss: { loss_mode: 'k3', use_policy_gradient: true, policy_loss_mode: 'gvpo' } },
    ],
  ])('at %s', (path, distillation, more = {}) => {
    expect(pathsOf(distillation, more)).toEqual([`distillation.${path}`]);
  });

  it('only then', () => {
    expect(pathsOf({})).toEqual([]);
    expect(pathsOf({ distillation_loss: { loss_mode: 'k1', use_policy_gradient: true } })).toEqual([]);
    expect(pathsOf({ enabled: false, teacher_model: { model_path: null } })).toEqual([]);
  });
});
