/**
 * What a teacher says of a batch: its log-probs of the sampled tokens, or its k most probable tokens at each position.
 */
import { forwardOne } from '../../../core/ports/one-lane.ts';
import type { ScoringModel } from '../../../core/ports/policy.ts';
import type { LossSettings } from '../../../core/records/schema.ts';
import type { AlgorithmSettings } from '../../../core/wire/jobs/index.ts';
import type { BatchTensors } from '../../../models/batch-tensors.ts';
import type { JobContext } from '../job/context.ts';
import { everySampleOnce } from '../losses/every-sample-once.ts';
import type { SampledLayout } from '../losses/every-sample-once.ts';

export type TeacherTensors = Pick<BatchTensors, 'teacherLogProbs_T' | 'teacherTopTokens_TK' | 'teacherTopLogProbs_TK'>;

/**
 * Tensors of the teacher, with the temperature of the policy, so that the two distributions are compared as they are
 * sampled.
 */
export async function teacherTensors(
  teacher: ScoringModel,
  layout: SampledLayout,
  { loss, layout: batchLayout }: Pick<AlgorithmSettings, 'loss' | 'layout'>,
  distillation: NonNullable<LossSettings['distillation']>,
  context: Pick<JobContext, 'signal' | 'progress'>,
): Promise<TeacherTensors> {
  const { temperature } = loss;
  const options = { temperature, keep: false };
  const call = { signal: context.signal };
  const tokens = layout.scored_T.length;
  const { lossMode, topk } = distillation;
  const passes = everySampleOnce(layout, batchLayout, (done, total) =>
    context.progress(done, total, 'log-probs of the teacher'),
  );
  if (lossMode !== 'forward_kl_topk') {
    const teacherLogProbs_T = new Float32Array(tokens);
    for (const { packed, tokens_P } of passes) {
      const { outputs } = await forwardOne(teacher, packed, { ...options, wants: ['logProbs'] }, call);
      tokens_P.forEach((t, p) => (teacherLogProbs_T[t] = outputs.logProbs[p] as number));
    }
    return { teacherLogProbs_T };
  }
  const teacherTopTokens_TK = new Int32Array(tokens * topk);
  const teacherTopLogProbs_TK = new Float32Array(tokens * topk);
  for (const { packed, tokens_P } of passes) {
    const wants = ['topTokens', 'topLogProbs'] as const;
    const { outputs } = await forwardOne(teacher, packed, { ...options, wants, topK: topk }, call);
    tokens_P.forEach((t, p) => {
      teacherTopTokens_TK.set(outputs.topTokens.subarray(p * topk, (p + 1) * topk), t * topk);
      teacherTopLogProbs_TK.set(outputs.topLogProbs.subarray(p * topk, (p + 1) * topk), t * topk);
    });
  }
  return { teacherTopTokens_TK, teacherTopLogProbs_TK };
}
