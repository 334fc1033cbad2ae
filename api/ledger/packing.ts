/** Checks how a batch is split into steps: every epoch uses every sample once, and no step uses a sample twice. */
import { stepsOfBatch } from './components.ts';
import { at } from './at.ts';
import type { Objects } from './objects.ts';
import type { Batch, Revision } from './records.ts';
import { integers, lengthOf, offsets } from './tensors.ts';
import type { Tensors } from './tensors.ts';

/** `revision`: undefined when only the header was read. */
export function packed(
  objects: Objects,
  key: string,
  tensors: Tensors,
  batch: Batch,
  samples: number,
  revision: Revision | undefined,
): void {
  objects.tried(key, 'tensors of a batch', () => {
    const { faults } = objects;
    checkSizesOfSamples(objects, key, tensors, samples);
    faults.equal(key, 'length of step_offsets:', stepsOfBatch(batch.components) + 1, lengthOf(tensors, 'step_offsets'));
    if (batch.shards === undefined) checkSizesOfTokens(objects, key, tensors, batch.oldLogProbs === 'stored');
    if (revision === undefined) return;
    const { kind, actor, algorithm } = revision.recipe;
    const epochs = stepsOfBatch(batch.components) === 0 ? 0 : kind === 'rl' ? actor.ppo_epochs : 1;
    if (algorithm.use_pf_ppo === true) checkDrawn(objects, key, tensors, samples, epochs);
    else checkWalk(objects, key, tensors, samples, epochs);
  });
}

/** Names of tensors with a value for each sample that a batch may have beside its rewards. */
export const samplesTensors = ['model_scores', 'groups', 'accuracies', 'group_q', 'log_z'] as const;

/** Checks sizes that the header gives: of what each of so many samples has. */
export function checkSizesOfSamples({ faults }: Objects, key: string, tensors: Tensors, samples: number): void {
  const sizes: readonly (readonly [string, number])[] = [
    ['offsets', samples + 1],
    ['scored_offsets', samples + 1],
    ['rewards', samples],
    ...samplesTensors.filter((name) => tensors.entries.has(name)).map((name) => [name, samples] as const),
  ];
  for (const [name, size] of sizes) faults.equal(key, `length of ${name}:`, size, lengthOf(tensors, name));
}

/** Checks sizes that the header gives: of what each response token has. */
export function checkSizesOfTokens({ faults }: Objects, key: string, tensors: Tensors, stored: boolean): void {
  const optional = [
    ...['old_log_probs', 'ref_log_probs', 'rollout_log_probs', 'rollout_is_weights', 'teacher_log_probs', 'values'],
  ].filter((name) => tensors.entries.has(name));
  for (const name of ['mask', 'advantages', 'returns', ...optional])
    faults.equal(key, `length of ${name}:`, lengthOf(tensors, 'scored'), lengthOf(tensors, name));
  faults.equal(key, 'old_log_probs stored:', stored, tensors.entries.has('old_log_probs'));
}

/**
 * Checks a batch of policy filtration, whose samples are drawn with replacement: as many as there are, in each epoch.
 */
function checkDrawn({ faults }: Objects, key: string, tensors: Tensors, samples: number, epochs: number): void {
  const members = integers(tensors, 'micro_samples');
  faults.equal(key, 'samples drawn in all steps:', samples * epochs, members.length);
  const outside = members.find((sample) => sample < 0 || sample >= samples);
  if (outside !== undefined) faults.add(key, `samples 0 to ${samples - 1}`, `sample ${outside}`);
}

function checkWalk({ faults }: Objects, key: string, tensors: Tensors, samples: number, epochs: number): void {
  const members = integers(tensors, 'micro_samples');
  const micros = offsets(tensors, 'micro_offsets', members.length);
  const steps = offsets(tensors, 'step_offsets', micros.length - 1);
  const times = new Int32Array(samples);
  for (let s = 0; s + 1 < steps.length; s++) {
    const inStep = members.subarray(at(micros, at(steps, s)), at(micros, at(steps, s + 1)));
    const distinct = new Set(inStep);
    if (distinct.size !== inStep.length)
      faults.add(key, `each sample once in step ${s}`, `${inStep.length - distinct.size} occur twice`);
    for (const sample of inStep) {
      if (sample < 0 || sample >= samples)
        faults.add(key, `samples 0 to ${samples - 1}`, `sample ${sample} in step ${s}`);
      else times[sample] = at(times, sample) + 1;
    }
  }
  times.forEach((found, sample) => {
    if (found !== epochs)
      faults.add(key, `sample ${sample} trained once in each of ${epochs} epochs`, `${found} times`);
  });
}
