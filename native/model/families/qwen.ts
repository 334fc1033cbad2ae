import type { Fields } from '../../../models/fields.ts';
import type { Family } from './family.ts';
import {
  decoder,
  gqa,
  normsBefore,
  readActivation,
  readLayerTypes,
  readSizes,
  refusal,
  separateGlu,
  separateQkv,
  sharedRope,
  siluNames,
} from './parts.ts';

/** Qwen 2 and 2.5: biases on q, k and v. */
export const qwen2: Family = {
  name: 'qwen2',
  classes: 'Qwen2',
  read(config, tensors) {
    const sizes = readSizes(config, { maxPositions: 32768, kvHeads: 32 });
    const activation = readActivation(config, 'hidden_act', siluNames, 'silu');
    const rope = sharedRope(config, sizes);
    const windows = readWindows(config, sizes.layers);
    return decoder(tensors, sizes, (at, index) => ({
      norms: normsBefore(tensors, at, sizes),
      mixer: gqa(sizes, {
        rope,
        window: windows[index] ?? 0,
        qkv: separateQkv(tensors, `${at}.self_attn`, sizes, true),
        out: [tensors.linear(`${at}.self_attn.o_proj`, sizes.hidden, sizes.heads * sizes.headDim)],
      }),
      ffn: separateGlu(tensors, `${at}.mlp`, sizes, activation),
    }));
  },
};

/** Qwen 3: norms of q and k per head. */
export const qwen3: Family = {
  name: 'qwen3',
  classes: 'Qwen3',
  read(config, tensors) {
    const sizes = readSizes(config, { maxPositions: 32768, kvHeads: 32, headDim: 128 });
    const bias = config.flag('attention_bias', false);
    const activation = readActivation(config, 'hidden_act', siluNames, 'silu');
    const rope = sharedRope(config, sizes);
    const windows = readWindows(config, sizes.layers);
    return decoder(tensors, sizes, (at, index) => ({
      norms: normsBefore(tensors, at, sizes),
      mixer: gqa(sizes, {
        rope,
        window: windows[index] ?? 0,
        queryNorm: tensors.norm(`${at}.self_attn.q_norm`, sizes.headDim, sizes.eps),
        keyNorm: tensors.norm(`${at}.self_attn.k_norm`, sizes.headDim, sizes.eps),
        qkv: separateQkv(tensors, `${at}.self_attn`, sizes, bias),
        out: [tensors.linear(`${at}.self_attn.o_proj`, sizes.hidden, sizes.heads * sizes.headDim, bias)],
      }),
      ffn: separateGlu(tensors, `${at}.mlp`, sizes, activation),
    }));
  },
};

/**
 * Reads the window of each layer; 0: full. Qwen uses a window only with `use_sliding_window`, and then from layer
 * `max_window_layers` on, unless `layer_types` lists the layers.
 */
function readWindows(config: Fields, layers: number): number[] {
  const types = readLayerTypes(config, layers);
  const slides =
    config.flag('use_sliding_window', false) &&
    (!config.has('sliding_window') || config.get('sliding_window') !== null);
  const window = slides ? config.size('sliding_window', 4096) : 0;
  const from = config.count('max_window_layers', 28);
  const sliding = (layer: number): boolean =>
    types === undefined ? layer >= from : types[layer] === 'sliding_attention';
  if (!slides && types?.includes('sliding_attention')) {
    throw refusal(config, 'layer_types names sliding_attention, but use_sliding_window or sliding_window is off');
  }
  return Array.from({ length: layers }, (_, layer) => (slides && sliding(layer) ? window : 0));
}
