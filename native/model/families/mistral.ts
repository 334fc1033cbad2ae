import type { Family } from './family.ts';
import {
  decoder,
  gqa,
  normsBefore,
  readActivation,
  readLayerTypes,
  readSizes,
  readWindow,
  refuseWithoutWindow,
  separateGlu,
  separateQkv,
  sharedRope,
  siluNames,
} from './parts.ts';

/** Mistral 7B and its kin: a window in every layer, where `sliding_window` is not null. */
export const mistral: Family = {
  name: 'mistral',
  classes: 'Mistral',
  read(config, tensors) {
    const sizes = readSizes(config, { maxPositions: 131_072, kvHeads: 8 });
    const activation = readActivation(config, 'hidden_act', siluNames, 'silu');
    const rope = sharedRope(config, sizes);
    const window = readWindow(config, 4096);
    const types = readLayerTypes(config, sizes.layers);
    refuseWithoutWindow(config, types, window);
    return decoder(tensors, sizes, (at, index) => ({
      norms: normsBefore(tensors, at, sizes),
      mixer: gqa(sizes, {
        rope,
        window: types === undefined || types[index] === 'sliding_attention' ? window : 0,
        qkv: separateQkv(tensors, `${at}.self_attn`, sizes, false),
        out: [tensors.linear(`${at}.self_attn.o_proj`, sizes.hidden, sizes.heads * sizes.headDim)],
      }),
      ffn: separateGlu(tensors, `${at}.mlp`, sizes, activation),
    }));
  },
};
