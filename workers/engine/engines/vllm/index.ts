/** The sampler `vllm`: vLLM in a Python process of its own (engines/vllm/), over the channel of the torch engine. */
import { arch } from 'node:os';
import type { SamplingEngine } from '../../../../core/ports/engines.ts';
import { startGroup } from '../torch/index.ts';
import type { TorchOptions } from '../torch/index.ts';
import { RankSampler } from '../torch/rank-sampler.ts';

const vllmName = 'vllm';

export function vllmSamplers(options: TorchOptions): SamplingEngine {
  const { device, versions } = options;
  const profile = `vllm-${versions.vllm ?? 'unknown'}-${arch()}-${versions.device.replaceAll(' ', '-')}`;
  return {
    name: vllmName,
    facts: () => ({
      name: vllmName,
      device: versions.device,
      build: `vllm ${versions.vllm ?? 'unknown'}, torch ${versions.torch}`,
      computes: ['fp32', 'bf16'],
      auto: { deterministic: 'fp32', otherwise: device === 'cuda' ? 'bf16' : 'fp32' },
      // What it samples depends on what else it samples.
      deterministic: {},
      randomness: 'seeded',
      naming: 'lineage',
    }),
    arithmetic: ({ compute }) => `${profile} ${compute}`,
    async sampler(model, given) {
      const alone = { ...given, trainable: false, ranks: 1 };
      return RankSampler.open(await startGroup('vllm', options, alone), model, alone);
    },
  };
}
