/** The samples of a batch side by side, as its tensors. */
import { at } from '../../../core/at.ts';
import { offsetsOf } from '../../../core/offsets.ts';
import { joinedTokenColumns } from '../../../core/token-columns.ts';
import type { Layout } from './batch-outputs.ts';
import type { Sample } from '../samples/samples.ts';
import type { StepPlan } from './step-plan.ts';

/** A plan as offsets of its steps and micro-batches. */
export function offsetsOfPlan({
  steps,
  micros,
}: StepPlan): Pick<Layout, 'stepOffsets_U1' | 'microOffsets_M1' | 'microSamples'> {
  return {
    stepOffsets_U1: offsetsOf(steps.map((step) => step.length)),
    microOffsets_M1: offsetsOf(micros.map((micro) => micro.length)),
    microSamples: Int32Array.from(micros.flat()),
  };
}

export function layOut(samples: readonly Sample[], plan: StepPlan): Layout {
  const offsets_S1 = offsetsOf(samples.map(({ prompt, response }) => prompt.length + response.length));
  const scoredOffsets_S1 = offsetsOf(samples.map(({ response }) => response.length));
  const tokens_N = new Int32Array(at(offsets_S1, -1));
  const scored_T = new Int32Array(at(scoredOffsets_S1, -1));
  const rolloutLogProbs_T = new Float32Array(scored_T.length);
  const mask_T = new Uint8Array(scored_T.length);
  samples.forEach(({ prompt, response, rolloutLogProbs, mask }, b) => {
    const start = at(offsets_S1, b);
    const scoredStart = at(scoredOffsets_S1, b);
    tokens_N.set(prompt, start);
    tokens_N.set(response, start + prompt.length);
    rolloutLogProbs_T.set(rolloutLogProbs, scoredStart);
    mask_T.set(mask, scoredStart);
    for (let t = 0; t < response.length; t++) scored_T[scoredStart + t] = start + prompt.length + t;
  });
  const tokenColumns = joinedTokenColumns(
    samples.map(({ tokenColumns: columns = {}, response }) => ({ columns, tokens: response.length })),
  );
  return {
    tokens_N,
    offsets_S1,
    scored_T,
    scoredOffsets_S1,
    mask_T,
    rolloutLogProbs_T,
    ...(Object.keys(tokenColumns).length > 0 && { tokenColumns }),
    ...offsetsOfPlan(plan),
  };
}

/** The samples with their tokens in the layout, so that the trajectories that they came from can be freed. */
export function samplesIn(layout: Layout, samples: readonly Sample[]): Sample[] {
  const { offsets_S1, scoredOffsets_S1 } = layout;
  return samples.map(({ tokenColumns: _, ...sample }, b) => {
    const [start, end] = [at(offsets_S1, b), at(offsets_S1, b + 1)];
    const scored = [at(scoredOffsets_S1, b), at(scoredOffsets_S1, b + 1)] as const;
    const response = start + sample.prompt.length;
    return {
      ...sample,
      prompt: layout.tokens_N.subarray(start, response),
      response: layout.tokens_N.subarray(response, end),
      mask: layout.mask_T.subarray(...scored),
      rolloutLogProbs: layout.rolloutLogProbs_T?.subarray(...scored) ?? sample.rolloutLogProbs,
    };
  });
}
