/** What `petrel doctor` says of engines that are installed, and of GPUs that none of them uses. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { writeEnvironment } from '../../infra/engines/environment.ts';
import type { EngineDevice } from '../../infra/engines/gpus.ts';
import { listDigest } from '../engines/install.ts';
import { installedEngines } from './installed-engines.ts';

let root = '';
beforeEach(() => void (root = mkdtempSync(join(tmpdir(), 'petrel-doctor-'))));
afterEach(() => rmSync(root, { recursive: true }));

function install(engine: string, device: EngineDevice, some: { python?: string; list?: string | undefined } = {}) {
  const { python = process.execPath, list = listDigest(engine, device) } = some;
  writeEnvironment(root, engine, device, {
    python,
    device: device === 'cpu' ? 'cpu' : 'cuda',
    ...(list !== undefined && { list }),
    versions: { torch: '2.15.0', transformers: '5.24.0', gpus: 'CUDA 13.2', device: 'NVIDIA H100' },
  });
}

async function lines() {
  const checks = installedEngines(root, root);
  return Promise.all(checks.map(async ({ name, check }) => ({ name, ...(await check()) })));
}

it('nothing, on a machine without GPUs and without engines', async () => {
  expect(await lines()).toEqual([]);
});

it('what is installed, and the command for a Python that is gone or a list that is an older one', async () => {
  install('torch', 'cpu');
  install('vllm', 'cpu', { python: '/nonexistent' });
  install('torch', 'cuda', { list: 'another' });
  expect(await lines()).toEqual([
    { name: 'torch-cpu', status: 'green', detail: 'torch 2.15.0, CUDA 13.2, transformers 5.24.0, NVIDIA H100' },
    expect.objectContaining({ name: 'torch-cuda', status: 'yellow', fix: 'petrel engine install torch --device cuda' }),
    { name: 'vllm-cpu', status: 'red', detail: '/nonexistent is missing', fix: 'petrel engine install vllm' },
  ]);
});

it('which engine a GPU lacks, until it has them all', async () => {
  mkdirSync(join(root, 'dev'));
  writeFileSync(join(root, 'dev/nvidiactl'), '');
  const gpu = async () => (await lines()).find(({ name }) => name === 'gpu');
  expect(await gpu()).toMatchObject({
    status: 'yellow',
    detail: 'a driver of NVIDIA, and for cuda no torch and no vllm: runs do not train on it',
    fix: expect.stringContaining('petrel engine install torch --device cuda') as string,
  });
  install('torch', 'cuda');
  expect(await gpu()).toMatchObject({
    detail: 'a driver of NVIDIA, and for cuda no vllm: runs do not sample on it',
    fix: expect.stringContaining('petrel engine install vllm --device cuda') as string,
  });
  install('vllm', 'cuda');
  expect(await gpu()).toMatchObject({ status: 'green' });
});
