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

/** Llama 2, 3 and models of its class, such as SmolLM2. It has no window, whatever other keys say. */
export const llama: Family = {
  name: 'llama',
  classes: 'Llama',
  read(config, tensors) {
    const sizes = readSizes(config, { maxPositions: 2048 });
    const bias = config.flag('attention_bias', false);
    const mlpBias = config.flag('mlp_bias', false);
    const activation = readActivation(config, 'hidden_act', siluNames, 'silu');
    const rope = sharedRope(config, sizes);
    if (readLayerTypes(config, sizes.layers)?.includes('sliding_attention'))
      throw refusal(config, 'layer_types: "sliding_attention" is not supported for llama');
    return decoder(tensors, sizes, (at) => ({
      norms: normsBefore(tensors, at, sizes),
      mixer: gqa(sizes, {
        rope,
        qkv: separateQkv(tensors, `${at}.self_attn`, sizes, bias),
        out: [tensors.linear(`${at}.self_attn.o_proj`, sizes.hidden, sizes.heads * sizes.headDim, bias)],
      }),
      ffn: separateGlu(tensors, `${at}.mlp`, sizes, activation, mlpBias),
    }));
  },
};
