import { ropeInverseFrequencies } from '../rope.ts';
import type { Family } from './family.ts';
import { decoder, gqa, normsBefore, readActivation, readSizes, readWindow, siluNames } from './parts.ts';

/**
 * Phi-3 and Phi-4: q, k and v are one tensor, gate and up another. Every layer has the window, where `sliding_window`
 * is given. Rope may turn only the leading dimensions of a head (`partial_rotary_factor`). The models with 128k
 * positions have the rope type longrope, which is refused.
 */
export const phi3: Family = {
  name: 'phi3',
  classes: 'Phi3',
  read(config, tensors) {
    const sizes = readSizes(config, { maxPositions: 4096, eps: 1e-5 });
    const { hidden, heads, kvHeads, headDim, ffn } = sizes;
    const activation = readActivation(config, 'hidden_act', siluNames, 'silu');
    const rope = ropeInverseFrequencies(config, headDim, sizes.maxPositions, true);
    const window = readWindow(config, 0);
    return decoder(tensors, sizes, (at) => ({
      norms: normsBefore(tensors, at, sizes),
      mixer: gqa(sizes, {
        rope,
        window,
        qkv: [tensors.linear(`${at}.self_attn.qkv_proj`, (heads + 2 * kvHeads) * headDim, hidden)],
        out: [tensors.linear(`${at}.self_attn.o_proj`, hidden, heads * headDim)],
      }),
      ffn: {
        kind: 'glu',
        width: ffn,
        activation,
        gateUp: [tensors.linear(`${at}.mlp.gate_up_proj`, 2 * ffn, hidden)],
        down: [tensors.linear(`${at}.mlp.down_proj`, hidden, ffn)],
      },
    }));
  },
};
