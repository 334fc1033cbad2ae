/**
 * The torch engine behind the ports of core/ports/: models of transformers, divided by FSDP2 over one Python process
 * for each device (engines/torch/).
 */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { arch } from 'node:os';
import { UnfitError } from '../../../../core/errors.ts';
import type { SamplingEngine, TrainingEngine } from '../../../../core/ports/engines.ts';
import type { EngineOptions } from '../../../../core/ports/policy.ts';
import type { EngineEnvironment } from '../../../../infra/engines/environment.ts';
import { TorchPolicy } from './policy.ts';
import { RankGroup } from './rank-group.ts';
import type { GroupOptions } from './rank-group.ts';
import { RankSampler } from './rank-sampler.ts';

const torchName = 'torch';
const hfName = 'hf';

export interface TorchOptions
  extends EngineEnvironment,
    Pick<GroupOptions, 'hungAfterSeconds' | 'onLine' | 'onStart' | 'gpus'> {
  /** Threads of this machine's processor for a group, divided among its ranks. */
  readonly threads: number;
}

export function torchEngines(options: TorchOptions): TrainingEngine {
  const { device, versions } = options;
  // The name of a queue: a word. It ends with the form of attention and of the head's chunks (attention.py, head.py).
  const profile = `torch-${versions.torch}-${deviceProfile(options)}-packed-3`.replaceAll(/[^\w-]+/g, '_');
  return {
    name: torchName,
    facts: () => ({
      name: torchName,
      device: versions.device,
      build: `torch ${versions.torch}, transformers ${versions.transformers}`,
      computes: ['fp32', 'bf16'],
      auto: { deterministic: 'fp32', otherwise: device === 'cuda' ? 'bf16' : 'fp32' },
      deterministic: { fp32: `${profile}-fp32`, bf16: `${profile}-bf16` },
      randomness: 'seeded',
      naming: 'lineage',
    }),
    arithmetic: ({ compute, deterministic }) => `${profile} ${compute} ${deterministic}`,
    open: async (model, given) => TorchPolicy.open(await startGroup('torch', options, given), model, given),
  };
}

/** The sampler `hf`: for machines that have only torch. It is one process. */
export function hfSamplers(options: TorchOptions): SamplingEngine {
  const { open: _, ...torch } = torchEngines(options);
  return {
    ...torch,
    name: hfName,
    facts: () => ({ ...torch.facts(), name: hfName }),
    async sampler(model, given) {
      const { division: _division, ...own } = given;
      const alone = { ...own, trainable: false, ranks: 1 };
      return RankSampler.open(await startGroup('torch', options, alone), model, alone);
    },
  };
}

/** Throws UnfitError `OtherEngine` when the Python that was installed is gone. */
export async function startGroup(
  engine: GroupOptions['engine'],
  options: TorchOptions,
  { deterministic, ranks = 1, division = {} }: EngineOptions,
): Promise<RankGroup> {
  if (!existsSync(options.python))
    throw new UnfitError('OtherEngine', `the Python of the ${engine} engine is gone: ${options.python}`, {
      hint: `petrel engine install ${engine}`,
    });
  const threads = Math.max(1, Math.floor(options.threads / ranks));
  return RankGroup.start({ ...options, engine, ranks, division, threads, deterministic });
}

/**
 * What decides the bits of a sum on a device: a model of GPU, or a kind of processor and the threads that share a sum.
 * torch's libraries choose their code by the maker and the instructions of a processor.
 */
function deviceProfile({ device, versions, threads }: TorchOptions): string {
  const name = versions.device.replaceAll(' ', '-');
  if (device === 'cuda') return name;
  const about =
    readFileSync('/proc/cpuinfo', 'utf8').match(/^(vendor_id|model name|cpu family|model|flags)\s*:.*$/gm) ?? [];
  const kind = createHash('sha256')
    .update([...new Set(about)].join('\n'))
    .digest('hex')
    .slice(0, 8);
  return `${arch()}-${name}-${kind}-t${threads}`;
}
