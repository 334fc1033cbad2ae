import { pow } from '../../../core/math/pow.ts';
import type { Fields } from '../../../models/fields.ts';
import type { Family } from './family.ts';
import {
  decoder,
  gqa,
  readActivation,
  readLayerTypes,
  readSizes,
  readWindow,
  refuseWithoutWindow,
  separateGlu,
  separateQkv,
  sharedRope,
} from './parts.ts';

/**
 * Gemma 2: norms around both blocks, whose files hold the weight minus 1; soft caps on scores and logits; a window in
 * every second layer; scores scaled by query_pre_attn_scalar^−0.5; the embedding times √hidden (the tied head is not).
 */
export const gemma2: Family = {
  name: 'gemma2',
  classes: 'Gemma2',
  read(config, tensors) {
    const sizes = readSizes(config, { maxPositions: 8192, kvHeads: 4, headDim: 256 });
    const { hidden, eps } = sizes;
    const bias = config.flag('attention_bias', false);
    const activation = readActivation(
      config,
      'hidden_activation',
      { gelu_pytorch_tanh: 'geluTanh' },
      'gelu_pytorch_tanh',
    );
    const rope = sharedRope(config, sizes);
    const window = readWindow(config, 4096);
    const types = readLayerTypes(config, sizes.layers);
    refuseWithoutWindow(config, types, window);
    const slides = (index: number) => (types === undefined ? index % 2 === 0 : types[index] === 'sliding_attention');
    const scale = pow(config.positive('query_pre_attn_scalar', 256), -0.5);
    const softcap = readSoftcap(config, 'attn_logit_softcapping', 50);
    const norm = (name: string) => tensors.norm(name, hidden, eps, 1);
    const layers = decoder(tensors, sizes, (at, index) => ({
      norms: {
        beforeMixer: norm(`${at}.input_layernorm`),
        afterMixer: norm(`${at}.post_attention_layernorm`),
        beforeFfn: norm(`${at}.pre_feedforward_layernorm`),
        afterFfn: norm(`${at}.post_feedforward_layernorm`),
      },
      mixer: gqa(sizes, {
        rope,
        scale,
        softcap,
        window: slides(index) ? window : 0,
        qkv: separateQkv(tensors, `${at}.self_attn`, sizes, bias),
        out: [tensors.linear(`${at}.self_attn.o_proj`, hidden, sizes.heads * sizes.headDim, bias)],
      }),
      ffn: separateGlu(tensors, `${at}.mlp`, sizes, activation),
    }));
    return {
      ...layers,
      embedding: { ...layers.embedding, scale: Math.fround(Math.sqrt(hidden)) },
      finalNorm: norm('model.norm'),
      tiedByDefault: true,
      logitSoftcap: readSoftcap(config, 'final_logit_softcapping', 30),
    };
  },
};

/** null turns a cap off; absent is the family's default. */
function readSoftcap(config: Fields, name: string, fallback: number): number {
  return config.has(name) && config.get(name) === null ? 0 : config.positive(name, fallback);
}
