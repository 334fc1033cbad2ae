/** Small random decoders and batches for tests of the engine. Same seed, same numbers. */
import { at } from '../../core/at.ts';
import type {
  Activation,
  DecoderSpec,
  HeadSpec,
  LayerSpec,
  LinearPartSpec,
  NormSpec,
  TensorSpec,
} from '../model/spec.ts';
import type { HeadKind } from '../../core/ports/policy.ts';
import type { PackedBatch } from '../../core/ports/policy.ts';
import type { PolicyOptions } from '../../core/ports/engines.ts';
import { createTrainer, type NativeTrainer } from '../index.ts';

/** Mulberry32: uniform in [0, 1). */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

export type ScoredBatch = PackedBatch & { readonly targets_P: Int32Array };

/** Sizes and features of a small decoder; all layers are alike but for their windows. */
export interface Shape {
  readonly layers: number;
  readonly hidden: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly ffn: number;
  readonly vocab: number;
  readonly eps: number;
  readonly maxPositions: number;
  readonly tied: boolean;
  readonly qkvBias: boolean;
  readonly outBias: boolean;
  readonly mlpBias: boolean;
  readonly qkNorm: boolean;
  /** q, k and v in one tensor, gate and up in another. */
  readonly fused: boolean;
  /** Norms after both blocks too, all with weight + 1. */
  readonly normsAround: boolean;
  readonly activation: Activation;
  /** Soft cap of scores and logits; 0: none. */
  readonly softcap: number;
  readonly embeddingScale: number;
  readonly head: HeadKind;
  /** Labels of a score head. */
  readonly labels: number;
  /** Window of each layer; 0: full. */
  readonly windows: readonly number[];
  readonly rope: readonly number[];
}

const smallest: Omit<Shape, 'windows' | 'rope'> = {
  layers: 2,
  hidden: 20,
  heads: 4,
  kvHeads: 2,
  headDim: 6,
  ffn: 27,
  vocab: 37,
  eps: 1e-5,
  maxPositions: 512,
  tied: false,
  qkvBias: false,
  outBias: false,
  mlpBias: false,
  qkNorm: false,
  fused: false,
  normsAround: false,
  activation: 'silu',
  softcap: 0,
  embeddingScale: 1,
  head: 'tokens',
  labels: 3,
};

export function decoder(changes: Partial<Shape> = {}): DecoderSpec {
  const sizes = { ...smallest, ...changes };
  const { headDim, layers } = sizes;
  const shape: Shape = {
    windows: Array<number>(layers).fill(0),
    rope: Array.from({ length: headDim / 2 }, (_, i) => 1 / 100 ** ((2 * i) / headDim)),
    ...sizes,
  };
  const tensors = new Map<string, readonly number[]>();
  const spec = parts(shape, tensors);
  const list: TensorSpec[] = [...tensors].map(([name, size]) => ({ name, shape: size }));
  return { ...spec, tensors: list.sort((a, b) => (a.name < b.name ? -1 : 1)) };
}

/** The spec without its list of tensors, which are put into `tensors`. */
function parts(shape: Shape, tensors: Map<string, readonly number[]>): Omit<DecoderSpec, 'tensors'> {
  const { hidden, heads, kvHeads, headDim, ffn, vocab, eps } = shape;
  const add = (name: string, size: readonly number[]) => {
    tensors.set(name, size);
    return name;
  };
  const linear = (name: string, rows: number, columns: number, bias: boolean): LinearPartSpec => ({
    weight: add(`${name}.weight`, [rows, columns]),
    rows,
    ...(bias && { bias: add(`${name}.bias`, [rows]) }),
  });
  const norm = (name: string, width = hidden): NormSpec => ({
    weight: add(`${name}.weight`, [width]),
    eps,
    offset: shape.normsAround ? 1 : 0,
  });
  const stacked = (at: string, names: readonly [string, number][], whole: string, bias: boolean) =>
    shape.fused
      ? [linear(`${at}.${whole}`, sum(names.map(([, rows]) => rows)), hidden, bias)]
      : names.map(([name, rows]) => linear(`${at}.${name}`, rows, hidden, bias));
  const [query, kv] = [heads * headDim, kvHeads * headDim];
  const layer = (at: string, window: number): LayerSpec => ({
    norms: {
      beforeMixer: norm(`${at}.input_layernorm`),
      beforeFfn: norm(`${at}.post_attention_layernorm`),
      ...(shape.normsAround && {
        afterMixer: norm(`${at}.after_mixer_norm`),
        afterFfn: norm(`${at}.after_ffn_norm`),
      }),
    },
    mixer: {
      kind: 'gqa',
      heads,
      kvHeads,
      headDim,
      scale: headDim ** -0.5,
      softcap: shape.softcap,
      window,
      rope: shape.rope,
      ...(shape.qkNorm && {
        queryNorm: norm(`${at}.self_attn.q_norm`, headDim),
        keyNorm: norm(`${at}.self_attn.k_norm`, headDim),
      }),
      qkv: stacked(
        `${at}.self_attn`,
        [
          ['q_proj', query],
          ['k_proj', kv],
          ['v_proj', kv],
        ],
        'qkv_proj',
        shape.qkvBias,
      ),
      out: [linear(`${at}.self_attn.o_proj`, hidden, query, shape.outBias)],
    },
    ffn: {
      kind: 'glu',
      width: ffn,
      activation: shape.activation,
      gateUp: stacked(
        `${at}.mlp`,
        [
          ['gate_proj', ffn],
          ['up_proj', ffn],
        ],
        'gate_up_proj',
        shape.mlpBias,
      ),
      down: [linear(`${at}.mlp.down_proj`, hidden, ffn, shape.mlpBias)],
    },
  });
  const table = add('model.embed_tokens.weight', [vocab, hidden]);
  const head = (): HeadSpec => {
    if (shape.head === 'values') return { kind: 'values', projection: [linear('score', 1, hidden, true)] };
    if (shape.head === 'scores')
      return { kind: 'scores', labels: shape.labels, projection: [linear('score', shape.labels, hidden, false)] };
    const part = shape.tied ? { weight: table, rows: vocab } : linear('lm_head', vocab, hidden, false);
    return { kind: 'tokens', projection: [part], softcap: shape.softcap };
  };
  return {
    family: 'test',
    hidden,
    vocab,
    maxPositions: shape.maxPositions,
    embedding: { table, scale: shape.embeddingScale },
    layers: shape.windows.map((window, i) => layer(`model.layers.${i}`, window)),
    finalNorm: norm('model.norm'),
    head: head(),
  };
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

/** A trainer with random weights: matrices uniform with deviation about 0.3, vectors of norms near 1. */
export function trainerOf(spec: DecoderSpec, seed: number, options: Partial<PolicyOptions> = {}): NativeTrainer {
  const trainer = createTrainer(spec, {
    compute: 'fp32',
    deterministic: true,
    threads: 1,
    trainable: true,
    ...options,
  });
  const random = randomOf(seed);
  for (const { name, offset, size } of trainer.parameters) {
    const [middle, width] = name.endsWith('norm.weight') ? [oneOf(spec), 0.6] : [0, 1];
    trainer.write(
      'weights',
      new Float32Array(size).map(() => middle + width * (random() - 0.5)),
      offset,
    );
  }
  trainer.weightsChanged();
  return trainer;
}

/** The norm weight that multiplies by 1. */
const oneOf = ({ finalNorm }: DecoderSpec): number => 1 - finalNorm.offset;

/** Sequences of the given lengths; every position scored against a random token. */
export function batchOf(spec: Pick<DecoderSpec, 'vocab'>, lengths: readonly number[], seed: number): ScoredBatch {
  const random = randomOf(seed);
  const sequences = lengths.map((length) => Array.from({ length }, () => Math.floor(random() * spec.vocab)));
  return packed(
    sequences,
    sequences.flat().map(() => Math.floor(random() * spec.vocab)),
  );
}

function packed(sequences: readonly (readonly number[])[], targets: readonly number[]): ScoredBatch {
  const cuSeqlens = [0];
  for (const sequence of sequences) cuSeqlens.push(at(cuSeqlens, -1) + sequence.length);
  const tokens_N = Int32Array.from(sequences.flat());
  return {
    tokens_N,
    cuSeqlens: Int32Array.from(cuSeqlens),
    positions_P: tokens_N.map((_, i) => i),
    targets_P: Int32Array.from(targets),
  };
}

export function sampleOf(batch: ScoredBatch, s: number): ScoredBatch {
  const [from, to] = [at(batch.cuSeqlens, s), at(batch.cuSeqlens, s + 1)];
  const tokens_N = batch.tokens_N.slice(from, to);
  const cuSeqlens = Int32Array.of(0, to - from);
  return { tokens_N, cuSeqlens, positions_P: tokens_N.map((_, i) => i), targets_P: batch.targets_P.slice(from, to) };
}
