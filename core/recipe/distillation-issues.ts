/** Checks of a distillation's keys. */
import { samplesResponses } from '../run-kinds.ts';
import { isModulePath } from '../module-path.ts';
import { needsOfLoss } from '../rl/names.ts';
import type { RecipeIssue } from './issues.ts';
import type { Recipe } from './schema.ts';

export function distillationIssues({ kind, distillation, actor }: Recipe): RecipeIssue[] {
  if (!distillation.enabled) return [];
  const { teacher_model: teacher, distillation_loss: loss } = distillation;
  const issues: RecipeIssue[] = [];
  if (!samplesResponses(kind))
    issues.push({
      path: 'distillation.enabled',
      message: 'only a run that samples responses has something that a teacher could judge',
      hint: 'set kind: rl, or leave distillation out',
    });
  if (teacher.model_path === null)
    issues.push({
      path: 'distillation.teacher_model.model_path',
      message: 'distillation needs a teacher',
      expected: 'a folder or a hub name',
      received: 'null',
    });
  if (isModulePath(actor.policy_loss.loss_mode))
    issues.push({
      path: 'actor.policy_loss.loss_mode',
      message: 'a loss of your own is not computed beside the loss of a teacher',
      expected: 'a built-in loss, such as vanilla',
      received: actor.policy_loss.loss_mode,
    });
  return [...issues, ...lossIssues(loss)];
}

function lossIssues(loss: Recipe['distillation']['distillation_loss']): RecipeIssue[] {
  const path = (name: string) => `distillation.distillation_loss.${name}`;
  const issues: RecipeIssue[] = [];
  const { loss_mode: mode, use_policy_gradient: asAdvantage, policy_loss_mode: policy } = loss;
  if ((mode === 'k1' || mode === 'kl') && !asAdvantage)
    issues.push({
      path: path('use_policy_gradient'),
      message: `the gradient of ${mode} itself is 0 in expectation, so it can only be an advantage`,
      expected: 'true',
      received: 'false',
      hint: 'set it to true, or choose loss_mode k2 or k3',
    });
  if (mode === 'forward_kl_topk' && asAdvantage)
    issues.push({
      path: path('use_policy_gradient'),
      message: 'forward_kl_topk has a gradient by every token of the teacher, and is no advantage of the sampled one',
      expected: 'false',
      received: 'true',
    });
  const needs = needsOfLoss(policy);
  if (asAdvantage && needs.length > 0)
    issues.push({
      path: path('policy_loss_mode'),
      message: `${policy} needs more than advantages: ${needs.join(', ')}`,
      expected: 'vanilla',
      received: policy,
    });
  return issues;
}
