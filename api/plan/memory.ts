/**
 * Memory of the worker processes of a run, estimated from the model's shape and the recipe. With P parameters, L of them in
 * matrices, layers l, N tokens of one forward pass and V words:
 *
 *   weights      4 P           fp32 masters
 *   copies       2 L or 4 L    what products read, in bf16 or fp32
 *   gradients    4 P           trainer only
 *   moments      8 P           trainer only
 *   snapshot     12 P          trainer only: the state while its checkpoint is written
 *   reference    4 P + copies  with actor.use_kl_loss
 *   activations  4 N (l (2 hidden + 2 query + 2 kv + heads + 2 ffn) + 3 ffn + 4 hidden + query) + 4 V min(N, rows of logits)
 *   KV cache     pages of 16 positions for every sample that decodes at once, at most a quarter of the machine's memory
 *   process      Node, the engine and its libraries, the rows: 200 MiB, and 60 MiB for each scorer process
 *
 * tests/integration/plan-memory.test.ts holds it against a measured run.
 */
import { isTied } from '../../core/decoder-spec.ts';
import type { DecoderSpec, LayerSpec } from '../../core/decoder-spec.ts';
import { batchArithmetic } from '../../core/recipe/index.ts';
import type { Recipe } from '../../core/recipe/index.ts';

const mib = 2 ** 20;

/** Bytes by what they hold. */
export interface MemoryParts {
  readonly weights: number;
  readonly copies: number;
  readonly gradients: number;
  readonly moments: number;
  readonly snapshot: number;
  readonly reference: number;
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
  /** Of one process. */
  readonly bytes: number;
}

/** What the estimate needs to know of the machine. */
export interface MachineMemory {
  readonly bytes: number;
  /** Products in bf16, where the recipe leaves it open. */
  readonly bf16: boolean;
}

export function memoryOf(recipe: Recipe, spec: DecoderSpec, machine: MachineMemory): ProcessMemory[] {
  let trainers = 1;
  return Object.entries(recipe.fleet.pools).flatMap(([pool, { roles, workers }]) => {
    const trains = roles.includes('trainer') ? Math.min(trainers, workers) : 0;
    trainers -= trains;
    const samples = roles.includes('rollout') && recipe.kind === 'rl';
    const rest = samples ? 'rollout' : 'reward';
    const of = (role: ProcessMemory['role'], count: number): ProcessMemory[] => {
      if (count === 0) return [];
      const parts = partsOf(recipe, spec, machine, role, samples);
      return [{ pool, workers: count, role, parts, bytes: sum(Object.values(parts)) }];
    };
    return [...of('trainer', trains), ...of(rest, workers - trains)];
  });
}

/** Elements of all parameters. */
export function parameterCount(spec: DecoderSpec): number {
  return sum(spec.tensors.map(({ shape }) => product(shape)));
}

function partsOf(
  recipe: Recipe,
  spec: DecoderSpec,
  machine: MachineMemory,
  role: ProcessMemory['role'],
  samples: boolean,
): MemoryParts {
  const parameters = parameterCount(spec);
  const isBf16 = computesInBf16(recipe, machine);
  const weights = 4 * parameters;
  const copies = matrixElements(spec) * (isBf16 ? 2 : 4);
  const trains = role === 'trainer';
  const loads = role !== 'reward';
  return {
    weights: loads ? weights : 0,
    copies: loads ? copies : 0,
    gradients: trains ? weights : 0,
    moments: trains ? 2 * weights : 0,
    snapshot: trains ? 3 * weights : 0,
    reference: trains && recipe.actor.use_kl_loss && recipe.kind === 'rl' ? weights + copies : 0,
    activations: trains ? activations(recipe, spec) : 0,
    kvCache: samples ? kvCache(recipe, spec, machine, isBf16) : 0,
    process: 200 * mib + (recipe.kind === 'rl' ? recipe.reward.num_workers * 60 * mib : 0),
  };
}

function computesInBf16({ model, deterministic }: Recipe, machine: MachineMemory): boolean {
  if (model.compute_dtype !== 'auto') return model.compute_dtype === 'bf16' && machine.bf16;
  return machine.bf16 && deterministic === false;
}

/** A tied embedding is a matrix of the head too. */
function matrixElements(spec: DecoderSpec): number {
  const matrices = spec.tensors.filter(({ name, shape }) => shape.length === 2 && !name.includes('embed'));
  return sum(matrices.map(({ shape }) => product(shape))) + (isTied(spec) ? spec.vocab * spec.hidden : 0);
}

function activations(recipe: Recipe, spec: DecoderSpec): number {
  const { hidden, vocab, layers } = spec;
  const { miniBatchResponses, longestSequence } = batchArithmetic(recipe);
  const tokens = Math.min(recipe.actor.ppo_max_token_len_per_gpu, miniBatchResponses * longestSequence);
  const kept = sum(layers.map((layer) => keptPerToken(hidden, layer)));
  const working = Math.max(...layers.map(({ mixer, ffn }) => 3 * ffn.width + 4 * hidden + mixer.heads * mixer.headDim));
  return 4 * (tokens * (kept + working) + vocab * Math.min(tokens, logitRows(vocab)));
}

/** Numbers that a layer keeps per token for the backward pass: native/src/executor.h. */
function keptPerToken(hidden: number, { norms, mixer, ffn }: LayerSpec): number {
  const { heads, kvHeads, headDim } = mixer;
  const normsAfter = [norms.afterMixer, norms.afterFfn].filter((norm) => norm !== undefined).length;
  return (2 + normsAfter) * hidden + 2 * heads * headDim + 2 * kvHeads * headDim + heads + 2 * ffn.width;
}

/** Positions whose logits are in memory at once: native/src/ops/head.cpp. */
function logitRows(vocab: number): number {
  return Math.min(512, Math.max(64, Math.floor(2 ** 24 / vocab / 64) * 64));
}

function kvCache(recipe: Recipe, spec: DecoderSpec, machine: MachineMemory, isBf16: boolean): number {
  const { responses, longestSequence } = batchArithmetic(recipe);
  const pages = Math.ceil(longestSequence / 16) + 1;
  const elements = sum(spec.layers.map(({ mixer }) => mixer.kvHeads * 2 * 16 * mixer.headDim));
  const pageBytes = elements * (isBf16 ? 2 : 4);
  const samples = Math.min(recipe.rollout.max_num_seqs, responses);
  return Math.max(pages * pageBytes, Math.min(samples * pages * pageBytes, machine.bytes / 4));
}

const product = (shape: readonly number[]): number => shape.reduce((all, size) => all * size, 1);
const sum = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0);
