/**
 * The torch engine behind the ports of core/ports/: models of transformers, divided by FSDP2 over one Python process
 * for each device (engines/torch/).
 */
import { arch } from 'node:os';
import type { SamplingEngine, TrainingEngine } from '../../../../core/ports/engines.ts';
import type { EngineOptions } from '../../../../core/ports/policy.ts';
import type { EngineEnvironment } from '../../../../infra/engines/environment.ts';
import { TorchPolicy } from './policy.ts';
import { RankGroup } from './rank-group.ts';
import type { GroupOptions } from './rank-group.ts';
import { HfSampler } from './sampler.ts';

export const torchName = 'torch';
export const hfName = 'hf';

export type TorchOptions = EngineEnvironment & Pick<GroupOptions, 'ranks'> & Partial<GroupOptions>;

export function torchEngines(options: TorchOptions): TrainingEngine {
  const { device, versions, ranks } = options;
  const build = `torch ${versions.torch}, transformers ${versions.transformers}`;
  const profile = `torch-${versions.torch}-${device}-${arch()}-${versions.device.replaceAll(' ', '-')}-r${ranks}`;
  return {
    name: torchName,
    facts: () => ({
      name: torchName,
      device: versions.device,
      build,
      computes: ['fp32', 'bf16'],
      auto: { deterministic: 'fp32', otherwise: device === 'cuda' ? 'bf16' : 'fp32' },
      deterministic: { fp32: `${profile}-fp32`, bf16: `${profile}-bf16` },
      randomness: 'seeded',
      naming: 'lineage',
    }),
    arithmetic: ({ compute, deterministic }) => `${profile} ${compute} ${deterministic}`,
    open: async (model, given) => TorchPolicy.open(await startGroup(options, given), model, given),
  };
}

/** The sampler `hf`: for machines that have only torch. */
export function hfSamplers(options: TorchOptions): SamplingEngine {
  const { open: _, ...torch } = torchEngines({ ...options, ranks: 1 });
  return {
    ...torch,
    name: hfName,
    facts: () => ({ ...torch.facts(), name: hfName }),
    async sampler(model, given) {
      const policy = { ...given, trainable: false };
      return HfSampler.open(await startGroup({ ...options, ranks: 1 }, policy), model, policy);
    },
  };
}

const startGroup = (options: TorchOptions, { threads, deterministic }: EngineOptions): Promise<RankGroup> =>
  RankGroup.start({ ...options, threads: Math.max(1, Math.floor(threads / options.ranks)), deterministic });
