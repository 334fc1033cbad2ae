/**
 * The sampler `vllm`: vLLM in Python processes of its own (engines/vllm/), one for each GPU, over the channel of the
 * torch engine.
 */
import { arch } from 'node:os';
import type { SamplingEngine } from '../../../../core/ports/engines.ts';
import type { OwningSampler } from '../../../../core/ports/sampler.ts';
import { Replicas } from '../replicas.ts';
import { startGroup } from '../torch/index.ts';
import type { TorchOptions } from '../torch/index.ts';
import { RankSampler } from '../torch/rank-sampler.ts';

const vllmName = 'vllm';

export interface VllmOptions extends TorchOptions {
  /** Processes of vLLM, each with the whole model. Default: one for each GPU, on a processor one. */
  readonly replicas?: number;
}

export function vllmSamplers(options: VllmOptions): SamplingEngine {
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
      const first = await startGroup('vllm', options, alone);
      const replicas = options.replicas ?? Math.max(1, first.gpus);
      if (replicas === 1) return RankSampler.open(first, model, alone);
      const sampler = await RankSampler.open(first, model, alone, { several: true });
      const among = { several: true, ...(sampler.weightsFile && { follows: sampler.weightsFile }) } as const;
      const followers = Array.from({ length: replicas - 1 }, async (_, i) =>
        RankSampler.open(await startGroup('vllm', { ...options, gpu: i + 1 }, alone), model, alone, among),
      );
      return new Replicas(sampler, await allOrNone(sampler, followers));
    },
  };
}

/** Closes those that were opened, and the first one, when another was not. */
async function allOrNone(first: OwningSampler, opening: readonly Promise<RankSampler>[]): Promise<RankSampler[]> {
  const settled = await Promise.allSettled(opening);
  const opened = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const failed = settled.find((one) => one.status === 'rejected');
  if (failed === undefined) return opened;
  await Promise.all([first, ...opened].map((sampler) => sampler.close()));
  throw failed.reason;
}
