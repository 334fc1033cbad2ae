/**
 * The sampler `vllm`: vLLM in Python processes of its own (engines/vllm/), over the channel of the torch engine. There
 * is one on each GPU, or on as many of them as share a model (`rollout.tensor_model_parallel_size`).
 */
import { arch } from 'node:os';
import { UnfitError } from '../../../../core/errors.ts';
import type { SamplingEngine } from '../../../../core/ports/engines.ts';
import type { OwningSampler } from '../../../../core/ports/sampler.ts';
import { Replicas } from '../replicas.ts';
import { startGroup } from '../torch/index.ts';
import type { TorchOptions } from '../torch/index.ts';
import { RankSampler } from '../torch/rank-sampler.ts';

const vllmName = 'vllm';

export interface VllmOptions extends TorchOptions {
  /** Number of vLLMs, each with the whole model. Default: one for each GPU, or for as many as share a model. */
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
      const { division: _division, ...own } = given;
      const alone = { ...own, trainable: false, ranks: 1 };
      const { tensorParallel = 1 } = given;
      const first = await startGroup('vllm', options, alone);
      if (first.gpus > 0 && first.gpus < tensorParallel) {
        await first.close();
        throw tooFewGpus(first.gpus, tensorParallel);
      }
      const replicas = options.replicas ?? Math.max(1, Math.floor(first.gpus / tensorParallel));
      const sampler = await RankSampler.open(first, model, alone);
      if (replicas === 1) return sampler;
      const followers = Array.from({ length: replicas - 1 }, async (_, i) => {
        const gpus = Array.from({ length: tensorParallel }, (_, gpu) => (i + 1) * tensorParallel + gpu);
        const group = await startGroup('vllm', { ...options, gpus }, alone);
        return RankSampler.open(group, model, alone, sampler.weightsFile);
      });
      return new Replicas(sampler, await allOrNone(sampler, followers));
    },
  };
}

const tooFewGpus = (gpus: number, wanted: number) =>
  new UnfitError(
    'TooFewGpus',
    `rollout.tensor_model_parallel_size=${wanted} needs ${wanted} GPUs; this worker has ${gpus}`,
    { hint: `rollout.tensor_model_parallel_size=${gpus}` },
  );

/** Closes those that were opened, and the first one, when another was not. */
async function allOrNone(first: OwningSampler, opening: readonly Promise<RankSampler>[]): Promise<RankSampler[]> {
  const settled = await Promise.allSettled(opening);
  const opened = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const failed = settled.find((one) => one.status === 'rejected');
  if (failed === undefined) return opened;
  await Promise.all([first, ...opened].map((sampler) => sampler.close()));
  throw failed.reason;
}
