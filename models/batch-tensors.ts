/** The tensors of a batch: core/records/FORMAT.md, "Batch tensors". */
import { checkIndices, checkLengths, checkOffsets } from './shape-check.ts';
import { decodeSafetensors, encodeSafetensors } from './safetensors.ts';
import type { TokenColumns } from '../core/token-columns.ts';
import { decodeTokenColumns, encodeTokenColumns, f32, f32Of, i32, i32Of, u8, u8Of } from './trajectories.ts';

/** Everything that an update reads. Shapes: the legend in core/rl/ragged.ts. */
export interface BatchTensors {
  readonly tokens_N: Int32Array;
  readonly offsets_S1: Int32Array;
  /** Index into tokens_N of every response token, sample by sample. */
  readonly scored_T: Int32Array;
  readonly scoredOffsets_S1: Int32Array;
  readonly mask_T: Uint8Array;
  readonly advantages_T: Float32Array;
  readonly returns_T: Float32Array;
  readonly rewards_S: Float32Array;
  /** Scores of a reward model, when the rewards contain them. */
  readonly modelScores_S?: Float32Array;
  readonly oldLogProbs_T?: Float32Array;
  readonly refLogProbs_T?: Float32Array;
  readonly rolloutLogProbs_T?: Float32Array;
  /**
   * Log-probs under the teacher of a distillation, of the sampled tokens, or of its k most probable tokens at each
   * position.
   */
  readonly teacherLogProbs_T?: Float32Array;
  readonly teacherTopTokens_TK?: Int32Array;
  readonly teacherTopLogProbs_TK?: Float32Array;
  /** Importance weights of trainer against sampler; multiply the policy loss. */
  readonly rolloutIsWeights_T?: Float32Array;
  /** Values of the critic before the update, when the advantages were computed from them. */
  readonly values_T?: Float32Array;
  /** Samples with equal numbers answer the same prompt; where the loss reads that. */
  readonly groups_S?: Int32Array;
  /** What the implicit reward model learns, and its log-ratio of whole responses before the update. */
  readonly accuracies_S?: Float32Array;
  readonly groupQ_S?: Float32Array;
  /** Estimates of each prompt's log partition function before the update, where the loss reads them. */
  readonly logZ_S?: Float32Array;
  /** Other numbers of each response token, as its sampler gave them. */
  readonly tokenColumns?: TokenColumns;
  /** Micro-batches of each optimiser step. */
  readonly stepOffsets_U1: Int32Array;
  /** Samples of each micro-batch. */
  readonly microOffsets_M1: Int32Array;
  readonly microSamples: Int32Array;
  /** The number of each sample in the whole batch; only a shard has them. */
  readonly places_S?: Int32Array;
}

/**
 * The iteration that a batch belongs to. It is part of the bytes, so that no two iterations share an object and one can
 * be removed at any time.
 */
export interface BatchOrigin {
  readonly iteration: number;
  readonly parentState: string;
}

export function encodeBatch(batch: BatchTensors, { iteration, parentState }: BatchOrigin): Uint8Array {
  const tensors = {
    tokens: i32(batch.tokens_N),
    offsets: i32(batch.offsets_S1),
    scored: i32(batch.scored_T),
    scored_offsets: i32(batch.scoredOffsets_S1),
    mask: u8(batch.mask_T),
    advantages: f32(batch.advantages_T),
    returns: f32(batch.returns_T),
    rewards: f32(batch.rewards_S),
    ...(batch.modelScores_S && { model_scores: f32(batch.modelScores_S) }),
    ...(batch.oldLogProbs_T && { old_log_probs: f32(batch.oldLogProbs_T) }),
    ...(batch.refLogProbs_T && { ref_log_probs: f32(batch.refLogProbs_T) }),
    ...(batch.rolloutLogProbs_T && { rollout_log_probs: f32(batch.rolloutLogProbs_T) }),
    ...(batch.teacherLogProbs_T && { teacher_log_probs: f32(batch.teacherLogProbs_T) }),
    ...(batch.teacherTopTokens_TK && { teacher_top_tokens: i32(batch.teacherTopTokens_TK) }),
    ...(batch.teacherTopLogProbs_TK && { teacher_top_log_probs: f32(batch.teacherTopLogProbs_TK) }),
    ...(batch.rolloutIsWeights_T && { rollout_is_weights: f32(batch.rolloutIsWeights_T) }),
    ...(batch.values_T && { values: f32(batch.values_T) }),
    ...(batch.groups_S && { groups: i32(batch.groups_S) }),
    ...(batch.accuracies_S && { accuracies: f32(batch.accuracies_S) }),
    ...(batch.groupQ_S && { group_q: f32(batch.groupQ_S) }),
    ...(batch.logZ_S && { log_z: f32(batch.logZ_S) }),
    ...(batch.tokenColumns && encodeTokenColumns(batch.tokenColumns)),
    step_offsets: i32(batch.stepOffsets_U1),
    micro_offsets: i32(batch.microOffsets_M1),
    micro_samples: i32(batch.microSamples),
    ...(batch.places_S && { places: i32(batch.places_S) }),
  };
  return encodeSafetensors(tensors, { iteration: String(iteration), parent_state: parentState });
}

export function decodeBatch(bytes: Uint8Array, where: string): BatchTensors {
  const file = decodeSafetensors(bytes, where);
  const optional = (name: string) => (file.tensors.has(name) ? f32Of(file, name, where) : undefined);
  const modelScores_S = optional('model_scores');
  const oldLogProbs_T = optional('old_log_probs');
  const refLogProbs_T = optional('ref_log_probs');
  const rolloutLogProbs_T = optional('rollout_log_probs');
  const teacherLogProbs_T = optional('teacher_log_probs');
  const teacherTopLogProbs_TK = optional('teacher_top_log_probs');
  const rolloutIsWeights_T = optional('rollout_is_weights');
  const values_T = optional('values');
  const accuracies_S = optional('accuracies');
  const logZ_S = optional('log_z');
  const groupQ_S = optional('group_q');
  const tokenColumns = decodeTokenColumns(file, where);
  const batch: BatchTensors = {
    tokens_N: i32Of(file, 'tokens', where),
    offsets_S1: i32Of(file, 'offsets', where),
    scored_T: i32Of(file, 'scored', where),
    scoredOffsets_S1: i32Of(file, 'scored_offsets', where),
    mask_T: u8Of(file, 'mask', where),
    advantages_T: f32Of(file, 'advantages', where),
    returns_T: f32Of(file, 'returns', where),
    rewards_S: f32Of(file, 'rewards', where),
    ...(modelScores_S && { modelScores_S }),
    ...(oldLogProbs_T && { oldLogProbs_T }),
    ...(refLogProbs_T && { refLogProbs_T }),
    ...(rolloutLogProbs_T && { rolloutLogProbs_T }),
    ...(teacherLogProbs_T && { teacherLogProbs_T }),
    ...(teacherTopLogProbs_TK && {
      teacherTopLogProbs_TK,
      teacherTopTokens_TK: i32Of(file, 'teacher_top_tokens', where),
    }),
    ...(rolloutIsWeights_T && { rolloutIsWeights_T }),
    ...(values_T && { values_T }),
    ...(accuracies_S && { accuracies_S }),
    ...(groupQ_S && { groupQ_S }),
    ...(logZ_S && { logZ_S }),
    ...(Object.keys(tokenColumns).length > 0 && { tokenColumns }),
    ...(file.tensors.has('groups') && { groups_S: i32Of(file, 'groups', where) }),
    stepOffsets_U1: i32Of(file, 'step_offsets', where),
    microOffsets_M1: i32Of(file, 'micro_offsets', where),
    microSamples: i32Of(file, 'micro_samples', where),
    ...(file.tensors.has('places') && { places_S: i32Of(file, 'places', where) }),
  };
  checkShapes(batch, where);
  return batch;
}

function checkShapes(batch: BatchTensors, where: string): void {
  const samples = batch.rewards_S.length;
  const scored = batch.scored_T.length;
  checkOffsets(where, 'offsets', batch.offsets_S1, samples, batch.tokens_N.length);
  checkOffsets(where, 'scored_offsets', batch.scoredOffsets_S1, samples, scored);
  checkLengths(where, samples, { model_scores: batch.modelScores_S });
  checkIndices(where, 'scored', batch.scored_T, batch.tokens_N.length);
  checkLengths(where, scored, { mask: batch.mask_T, advantages: batch.advantages_T, returns: batch.returns_T });
  checkLengths(where, scored, {
    old_log_probs: batch.oldLogProbs_T,
    ref_log_probs: batch.refLogProbs_T,
    rollout_log_probs: batch.rolloutLogProbs_T,
    teacher_log_probs: batch.teacherLogProbs_T,
    rollout_is_weights: batch.rolloutIsWeights_T,
    values: batch.values_T,
  });
  checkLengths(where, batch.teacherTopLogProbs_TK?.length ?? 0, { teacher_top_tokens: batch.teacherTopTokens_TK });
  checkLengths(where, samples, {
    groups: batch.groups_S,
    accuracies: batch.accuracies_S,
    group_q: batch.groupQ_S,
    log_z: batch.logZ_S,
    places: batch.places_S,
  });
  for (const [name, { data, width }] of Object.entries(batch.tokenColumns ?? {}))
    checkLengths(where, width * scored, { [name]: data });
  const micros = batch.microOffsets_M1.length - 1;
  checkOffsets(where, 'micro_offsets', batch.microOffsets_M1, micros, batch.microSamples.length);
  checkOffsets(where, 'step_offsets', batch.stepOffsets_U1, batch.stepOffsets_U1.length - 1, micros);
  checkIndices(where, 'micro_samples', batch.microSamples, samples);
}
