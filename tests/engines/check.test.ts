// @module-tag engines
/** `petrel engine check` on engines that are installed, and `--device` where the Python is for another one. */
import { expect, it } from 'vitest';
import { installEngine, tryEngine } from '../../api/index.ts';
import { petrelHome } from '../../infra/home.ts';
import { hasDriver } from '../../infra/engines/gpus.ts';
import { readInstalled } from '../../infra/engines/environment.ts';
import { runWords } from '../cli.ts';
import { temporaryHome } from '../servers.ts';

it('says devices, memory, speed, and whether a training step repeats its bits', async () => {
  const { code, out } = await runWords(petrelHome(), ['engine', 'check', 'torch']);
  expect(code).toBe(0);
  expect(out).toMatch(/^torch-cpu: torch \S+, transformers \S+$/m);
  expect(out).toMatch(/^processor: \S+, \d+ GiB$/m);
  for (const compute of ['fp32', 'bf16']) expect(out).toMatch(new RegExp(`^${compute} +same bits +\\d+ +\\d+$`, 'm'));
  expect(out).toContain('this engine may be trusted');
});

it('tells of vLLM whether its samples repeat', async () => {
  const trial = await tryEngine(petrelHome(), 'vllm', 'cpu');
  expect(trial.computes.map(({ compute, trainedPerSecond }) => [compute, trainedPerSecond])).toEqual([
    ['fp32', undefined],
    ['bf16', undefined],
  ]);
  expect(trial.devices).toHaveLength(1);
});

it('takes no Python for a device for which its torch is not built, or that is not there', async () => {
  const python = readInstalled(petrelHome(), 'torch', 'cpu')?.python ?? '';
  const temporary = temporaryHome();
  try {
    const into = (device: string) => installEngine({ home: temporary.home, engine: 'torch', device, python });
    await expect(into('rocm')).rejects.toThrow(/is built for CUDA .*, not for rocm/);
    if (!hasDriver('cuda')) await expect(into('cuda')).rejects.toThrow(/finds no GPU/);
    expect(await into('cpu')).toMatchObject({ known: false });
    expect(await into('cpu')).toMatchObject({ known: true });
  } finally {
    temporary.remove();
  }
});
