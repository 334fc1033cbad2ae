/** What `petrel doctor` says of engines that petrel engine install makes, and of GPUs that none of them uses. */
import { engineEnvironments } from '../../core/engines.ts';
import { existsSync } from 'node:fs';
import { readInstalled } from '../../infra/engines/environment.ts';
import { engineDevices, gpuOfMachine } from '../../infra/engines/gpus.ts';
import type { EngineDevice } from '../../infra/engines/gpus.ts';
import { installCommand, listDigest } from '../engines/install.ts';
import { green } from './result.ts';
import type { DoctorCheck, DoctorResult } from './result.ts';

/** A line for each engine that is installed, and one for the GPUs of this machine. `root`: of the file system. */
export function installedEngines(home: string, root = '/'): DoctorCheck[] {
  const gpu = gpuOfMachine(root);
  return [
    ...engineEnvironments.flatMap((engine) =>
      engineDevices.flatMap((device) => {
        const check = installed(home, engine, device);
        return check === undefined ? [] : [{ name: `${engine}-${device}`, check }];
      }),
    ),
    ...(gpu === undefined ? [] : [{ name: 'gpu', check: async () => usesGpu(home, gpu) }]),
  ];
}

function installed(home: string, engine: string, device: EngineDevice): DoctorCheck['check'] | undefined {
  const environment = readInstalled(home, engine, device);
  if (environment === undefined) return undefined;
  const { python, versions, list } = environment;
  const fix = installCommand(engine, device);
  if (!existsSync(python)) return async () => ({ status: 'red', detail: `${python} is missing`, fix });
  const built = versions.gpus === undefined ? '' : `, ${versions.gpus}`;
  const vllm = versions.vllm === undefined ? '' : `vllm ${versions.vllm}, `;
  const detail = `${vllm}torch ${versions.torch}${built}, transformers ${versions.transformers}, ${versions.device}`;
  if (list !== undefined && list !== listDigest(engine, device))
    return async () => ({ status: 'yellow', detail: `${detail}; petrel now has another list of packages`, fix });
  return async () => green(detail);
}

/** A driver without an engine is a GPU that no run uses. */
function usesGpu(home: string, device: 'cuda' | 'rocm'): DoctorResult {
  const missing = engineEnvironments.filter((engine) => readInstalled(home, engine, device) === undefined);
  const what = device === 'cuda' ? 'NVIDIA' : 'AMD';
  if (missing.length === 0) return green(`a driver of ${what}, and every engine for ${device}`);
  return {
    status: 'yellow',
    detail: `a driver of ${what}, and for ${device} no ${missing.join(' and no ')}: runs do not ${missing.includes('torch') ? 'train' : 'sample'} on it`,
    fix: `${installCommand(missing[0] ?? '', device)} (docs/gpus.md)`,
  };
}
