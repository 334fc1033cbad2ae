/** Whether this machine has GPUs, as the files of their drivers say. No program is asked, and no library is loaded. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** What an engine can be installed for: processors, GPUs of NVIDIA, GPUs of AMD. */
export const engineDevices = ['cpu', 'cuda', 'rocm'] as const;
export type EngineDevice = (typeof engineDevices)[number];

/** Files of which one is there when a driver is loaded. `dxg`: Windows lends its GPU to WSL. */
const driverFiles: Readonly<Record<Exclude<EngineDevice, 'cpu'>, readonly string[]>> = {
  cuda: ['proc/driver/nvidia/version', 'dev/nvidiactl', 'dev/dxg'],
  rocm: ['dev/kfd', 'dev/dxg'],
};

/** What tells a person whether a driver works. */
export const driverProgram: Readonly<Record<keyof typeof driverFiles, string>> = {
  cuda: 'nvidia-smi',
  rocm: 'rocm-smi',
};

/** The kind of GPU for which this machine has a driver; undefined where there is none. `root`: of the file system. */
export function gpuOfMachine(root = '/'): keyof typeof driverFiles | undefined {
  return (['cuda', 'rocm'] as const).find((device) => hasDriver(device, root));
}

export const hasDriver = (device: keyof typeof driverFiles, root = '/'): boolean =>
  driverFiles[device].some((file) => existsSync(join(root, file)));
