/**
 * Memory of the worker processes of a run, estimated from the model's shape and the recipe. With P parameters, layers
 * l, N tokens of one forward pass and V words:
 *
 *   weights, copies, gradients, moments: core/engine-memory.ts; the last two in the trainer only
 *   snapshot     12 P          trainer only: the state while its checkpoint is written; once for each component
 *   critic       as the policy's weights, copies, gradients and moments, in the trainer, for each further component:
 *                the critic, the reward model of prime; also with critic.own_trainer, because one trainer may have
 *                to hold both
 *   reference    weights and copies, with actor.use_kl_loss, algorithm.use_kl_in_reward, or a loss or a reward model
 *                that reads its log-probs, and with kind: dpo
 *   reward model as much again, with reward.reward_model
 *   teacher      weights and copies of its own shape, with distillation.enabled
 *   activations  4 N (l (2 hidden + 2 query + 2 kv + heads + g ffn) + 4 ffn + 4 hidden + query)
 *                + 4 V min(N, rows of logits), where g is 2 in fp32 and 1 in bf16, in which gate and up are kept
 *   KV cache     pages of 16 positions for every sample that decodes at once, at most a quarter of the machine's memory
 *   process      Node, the engine and its libraries, the rows: 200 MiB, and 60 MiB for each scorer process
 *
 * tests/integration/plan-memory.test.ts holds it against a measured run.
 */
import { samplesResponses } from '../../core/run-kinds.ts';
import type { DecoderSpec, LayerSpec } from '../../core/decoder-spec.ts';
import {
  cacheBytes,
  cacheShare,
  modelMemory,
  pageBytes,
  pagesOfSequence,
  parameterCount,
} from '../../core/engine-memory.ts';
import type { ModelMemory } from '../../core/engine-memory.ts';
import type { ComputeType } from '../../core/ports/policy.ts';
import { batchArithmetic, readsReference, trainedComponents } from '../../core/recipe/index.ts';
import type { Recipe } from '../../core/recipe/index.ts';

const mib = 2 ** 20;

/** Bytes by what they hold. */
export interface MemoryParts extends ModelMemory {
  readonly snapshot: number;
  readonly critic: number;
  readonly reference: number;
  /** Absent without a teacher. */
  readonly teacher?: number;
  readonly activations: number;
  readonly kvCache: number;
  readonly process: number;
}

/** Processes of one kind in one pool. */
export interface ProcessMemory {
  readonly pool: string;
  readonly workers: number;
  /** The run has one trainer; other workers of its pool only generate and score. */
  readonly role: 'trainer' | 'rollout' | 'reward';
  readonly parts: MemoryParts;
  /** Memory of one process. */
  readonly bytes: number;
}

/** What the estimate needs to know of the machine. */
export interface MachineMemory {
  readonly bytes: number;
  /** Products in bf16, where the recipe leaves it open. */
  readonly bf16: boolean;
}

/** `teacher`: the model of a distillation. */
export function memoryOf(
  recipe: Recipe,
  spec: DecoderSpec,
  machine: MachineMemory,
  teacher?: DecoderSpec,
): ProcessMemory[] {
  let trainers = 1;
  return Object.entries(recipe.fleet.pools).flatMap(([pool, { roles, workers }]) => {
    const trains = roles.includes('trainer') ? Math.min(trainers, workers) : 0;
    trainers -= trains;
    const samples = roles.includes('rollout') && samplesResponses(recipe.kind);
    const rest = samples ? 'rollout' : 'reward';
    const of = (role: ProcessMemory['role'], count: number): ProcessMemory[] => {
      if (count === 0) return [];
      const parts = partsOf(recipe, spec, machine, role, samples, teacher);
      return [{ pool, workers: count, role, parts, bytes: sum(Object.values(parts)) }];
    };
    return [...of('trainer', trains), ...of(rest, workers - trains)];
  });
}

function partsOf(
  recipe: Recipe,
  spec: DecoderSpec,
  machine: MachineMemory,
  role: ProcessMemory['role'],
  samples: boolean,
  teacher: DecoderSpec | undefined,
): MemoryParts {
  const compute = computeOf(recipe, machine);
  const trains = role === 'trainer';
  const model = modelMemory(spec, { compute, trainable: trains });
  const none: ModelMemory = { weights: 0, copies: 0, gradients: 0, moments: 0 };
  return {
    ...(role === 'reward' ? none : model),
    snapshot: trains ? 12 * parameterCount(spec) * trainedComponents(recipe).length : 0,
    critic: trains ? (trainedComponents(recipe).length - 1) * sum(Object.values(model)) : 0,
    reference: trains ? frozenModels(recipe) * (model.weights + model.copies) : 0,
    ...(trains && teacher && { teacher: sum(Object.values(modelMemory(teacher, { compute, trainable: false }))) }),
    activations: trains ? activations(recipe, spec, compute) : 0,
    kvCache: samples ? kvCache(recipe, spec, machine, compute) : 0,
    process: 200 * mib + (samplesResponses(recipe.kind) ? recipe.reward.num_workers * 60 * mib : 0),
  };
}

/** Frozen models beside the policy: the reference, and a reward model, which is taken to be as large as the policy. */
const frozenModels = (recipe: Recipe): number =>
  (readsReference(recipe) ? 1 : 0) + (recipe.reward.reward_model.enable ? 1 : 0);

function computeOf({ model, deterministic }: Recipe, machine: MachineMemory): ComputeType {
  if (!machine.bf16) return 'fp32';
  if (model.compute_dtype !== 'auto') return model.compute_dtype;
  return deterministic === false ? 'bf16' : 'fp32';
}

function activations(recipe: Recipe, spec: DecoderSpec, compute: ComputeType): number {
  const { hidden, vocab, layers } = spec;
  const { miniBatchResponses, longestSequence } = batchArithmetic(recipe);
  const tokens = Math.min(recipe.actor.ppo_max_token_len_per_gpu, miniBatchResponses * longestSequence);
  const kept = sum(layers.map((layer) => keptPerToken(hidden, layer, compute)));
  const working = Math.max(...layers.map(({ mixer, ffn }) => 4 * ffn.width + 4 * hidden + mixer.heads * mixer.headDim));
  return 4 * (tokens * (kept + working) + vocab * Math.min(tokens, logitRows(vocab)));
}

/** What a layer keeps per token for the backward pass, in units of 4 bytes: native/src/executor.h. */
function keptPerToken(hidden: number, { norms, mixer, ffn }: LayerSpec, compute: ComputeType): number {
  const { heads, kvHeads, headDim } = mixer;
  const normsAfter = [norms.afterMixer, norms.afterFfn].filter((norm) => norm !== undefined).length;
  const gateUp = (compute === 'bf16' ? 1 : 2) * ffn.width;
  return (2 + normsAfter) * hidden + 2 * heads * headDim + 2 * kvHeads * headDim + heads + gateUp;
}

/** Positions whose logits are in memory at once: native/src/ops/head.cpp. */
function logitRows(vocab: number): number {
  return Math.min(512, Math.max(64, Math.floor(2 ** 24 / vocab / 64) * 64));
}

function kvCache(recipe: Recipe, spec: DecoderSpec, machine: MachineMemory, compute: ComputeType): number {
  const { responses, longestSequence } = batchArithmetic(recipe);
  const room = { maxSeqs: Math.min(recipe.rollout.max_num_seqs, responses), maxModelLen: longestSequence };
  const one = pagesOfSequence(room) * pageBytes(spec, compute);
  return Math.max(one, Math.min(cacheBytes(spec, compute, room), machine.bytes * cacheShare));
}

const sum = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0);
