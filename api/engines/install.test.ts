/** Installations of engines that cannot be made say so before anything is fetched. */
import { readdirSync } from 'node:fs';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { hasDriver } from '../../infra/engines/gpus.ts';
import { cliHome } from '../../tests/cli.ts';
import type { CliHome } from '../../tests/cli.ts';
import { installEngine } from './install.ts';

let cli: CliHome;
beforeEach(() => (cli = cliHome()));
afterEach(() => cli.remove());
const install = (engine: string, device: string, python?: string) =>
  installEngine({ home: cli.home, engine, device, ...(python !== undefined && { python }) });

it('of an unknown engine or device name those that there are', async () => {
  await expect(install('jax', 'cpu')).rejects.toMatchObject({ hint: 'one of torch, vllm' });
  await expect(install('torch', 'tpu')).rejects.toMatchObject({ hint: 'one of cpu, cuda, rocm' });
});

it('for ROCm say that there is no list, and how a Python that has torch is used', async () => {
  await expect(install('torch', 'rocm')).rejects.toMatchObject({
    code: 'InvalidInput',
    message: 'petrel has no list of the packages of torch for rocm',
    hint: expect.stringContaining('petrel engine install torch --device rocm --python /path/to/python') as string,
  });
});

it.skipIf(hasDriver('cuda'))('for CUDA on a machine without a driver fetch nothing', async () => {
  await expect(install('vllm', 'cuda')).rejects.toMatchObject({
    message: 'this machine has no driver for cuda',
    hint: expect.stringContaining('nvidia-smi') as string,
  });
  expect(readdirSync(cli.home)).not.toContain('engines');
});

it('with a Python that is not there or lacks torch leave nothing behind that names it', async () => {
  await expect(install('torch', 'cpu', '/nonexistent/python')).rejects.toMatchObject({ code: 'EngineFailed' });
  expect(readdirSync(`${cli.home}/engines/torch-cpu`)).not.toContain('environment.json');
});
