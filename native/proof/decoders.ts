/** Two small decoders that between them use every operation of the engine. */
import type { DecoderSpec, LayerSpec, LinearSpec, NormSpec, TensorSpec } from '../model/spec.ts';

/** What the two differ in. */
interface Features {
  readonly activation: 'silu' | 'geluTanh';
  /** Norms of queries and keys, and biases. */
  readonly plain: boolean;
  /** Softcaps of scores and logits, and norms behind the blocks. */
  readonly softcap: number;
  readonly windows: readonly number[];
}

const hidden = 64;
const heads = 4;
const kvHeads = 2;
const headDim = 16;
const width = 152;
const vocab = 99;

/** A decoder such as Qwen3 with the biases of Qwen2, and a layer that looks back 19 tokens. */
export const siluDecoder = (): DecoderSpec =>
  decoderOf({ activation: 'silu', plain: false, softcap: 0, windows: [0, 19] });

/** A decoder such as Gemma 2. */
export const geluDecoder = (): DecoderSpec =>
  decoderOf({ activation: 'geluTanh', plain: true, softcap: 7, windows: [0] });

function decoderOf(features: Features): DecoderSpec {
  const tensors: TensorSpec[] = [];
  const tensor = (name: string, ...shape: number[]): string => {
    tensors.push({ name, shape });
    return name;
  };
  const table = tensor('embed.weight', vocab, hidden);
  const layers = features.windows.map((window, i) => layerOf(`layers.${i}`, window, features, tensor));
  const finalNorm: NormSpec = { weight: tensor('norm.weight', hidden), eps: 1e-5, offset: 0 };
  const projection = [{ weight: tensor('lm_head.weight', vocab, hidden), rows: vocab }];
  return {
    family: 'probe',
    hidden,
    vocab,
    maxPositions: 128,
    tensors: tensors.sort((a, b) => (a.name < b.name ? -1 : 1)),
    embedding: { table, scale: 1 },
    layers,
    finalNorm,
    head: { kind: 'tokens', projection, softcap: features.softcap },
  };
}

type AddTensor = (name: string, ...shape: number[]) => string;

function layerOf(at: string, window: number, features: Features, tensor: AddTensor): LayerSpec {
  const { plain, softcap, activation } = features;
  const norm = (name: string, size = hidden): NormSpec => ({
    weight: tensor(`${at}.${name}.weight`, size),
    eps: 1e-5,
    offset: 0,
  });
  const linear = (columns: number, bias: boolean, ...parts: readonly (readonly [string, number])[]): LinearSpec =>
    parts.map(([name, rows]) => ({
      weight: tensor(`${at}.${name}.weight`, rows, columns),
      rows,
      ...(bias && { bias: tensor(`${at}.${name}.bias`, rows) }),
    }));
  const [query, kv] = [heads * headDim, kvHeads * headDim];
  return {
    norms: {
      beforeMixer: norm('norm1'),
      beforeFfn: norm('norm2'),
      ...(plain && { afterMixer: norm('norm3'), afterFfn: norm('norm4') }),
    },
    mixer: {
      ...{ kind: 'gqa', heads, kvHeads, headDim, scale: 0.25, softcap, window, rope: frequencies },
      ...(!plain && { queryNorm: norm('q_norm', headDim), keyNorm: norm('k_norm', headDim) }),
      qkv: linear(hidden, !plain, ['q', query], ['k', kv], ['v', kv]),
      out: linear(query, false, ['o', hidden]),
    },
    ffn: {
      ...{ kind: 'glu', width, activation },
      gateUp: linear(hidden, false, ['gate', width], ['up', width]),
      down: linear(width, false, ['down', hidden]),
    },
  };
}

/** Written out, so that the angles of rope are no matter of a power function. */
const frequencies = [1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.001];
