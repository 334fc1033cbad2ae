import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { readEnvironment, readInstalled, writeEnvironment } from './environment.ts';
import type { EngineEnvironment } from './environment.ts';
import { gpuOfMachine, hasDriver } from './gpus.ts';

let root = '';
beforeEach(() => void (root = mkdtempSync(join(tmpdir(), 'petrel-gpus-'))));
afterEach(() => rmSync(root, { recursive: true }));

function put(file: string): void {
  mkdirSync(dirname(join(root, file)), { recursive: true });
  writeFileSync(join(root, file), '');
}

it('a machine without a file of a driver has no GPU', () => {
  put('proc/driver/other');
  expect(gpuOfMachine(root)).toBeUndefined();
});

it.each([
  ['proc/driver/nvidia/version', 'cuda'],
  ['dev/nvidiactl', 'cuda'],
  ['dev/kfd', 'rocm'],
])('%s is the driver for %s', (file, device) => {
  put(file);
  expect(gpuOfMachine(root)).toBe(device);
});

it('the GPU that Windows lends to Linux may be of either maker', () => {
  put('dev/dxg');
  expect([hasDriver('cuda', root), hasDriver('rocm', root)]).toEqual([true, true]);
});

it('workers find an engine for ROCm under torch’s word for it, unless there is one for CUDA', () => {
  const made = (device: string): EngineEnvironment => ({
    python: '/python',
    device: 'cuda',
    versions: { torch: '2.15.0', transformers: '5.24.0', device },
  });
  writeEnvironment(root, 'torch', 'rocm', made('MI300X'));
  expect(readEnvironment(root, 'torch-cuda')?.versions.device).toBe('MI300X');
  expect(readInstalled(root, 'torch', 'cuda')).toBeUndefined();
  expect(readEnvironment(root, 'torch-cpu')).toBeUndefined();
  writeEnvironment(root, 'torch', 'cuda', made('H100'));
  expect(readEnvironment(root, 'torch-cuda')?.versions.device).toBe('H100');
});
