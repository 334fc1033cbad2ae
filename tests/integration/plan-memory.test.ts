// @module-tag long
/** Compares what `petrel plan` says about memory and disk with a run. */
import { mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { PetrelUser } from '../black-box/petrel.ts';
import { saveRandomModel } from '../random-model.ts';

const user = new PetrelUser();
afterAll(() => user.remove());

/** 27 million parameters, so that its buffers are most of the process's memory. */
const sizes = {
  hidden_size: 512,
  intermediate_size: 1536,
  num_hidden_layers: 8,
  num_attention_heads: 8,
  num_key_value_heads: 4,
  vocab_size: 4096,
  max_position_embeddings: 64,
};

/** Largest allowed factor between the estimate and the peak, in both directions. */
const factor = 1.5;

interface Plan {
  readonly memory: { readonly bytes: number };
  readonly disk: { readonly checkpoints: number; readonly bytes: number };
}

it('the estimate is within a factor of 1.5 of the peak of a run', async () => {
  await saveRandomModel(join(user.folder, 'model'), sizes, 0.02);
  user.recipe('recipe.yaml', { model: { path: './model' } });
  const plan = (await user.petrel('plan', 'recipe.yaml', '--json')).json<Plan>();
  const run = await user.petrel('run', 'recipe.yaml', '--name', 'sized', '--wait', '--json');
  expect(run.code, run.err).toBe(0);
  const peak = Math.max(...workers().map(peakBytes));
  expect(plan.memory.bytes).toBeGreaterThan(peak / factor);
  expect(plan.memory.bytes).toBeLessThan(peak * factor);

  expect(plan.disk.checkpoints).toBe(2);
  expect(bytesBelow(join(user.home, 'store')) / plan.disk.bytes).toBeCloseTo(1, 1);
});

/** Worker processes of the stack of this home. */
function workers(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
        return words.includes('programs/worker.js') && readFileSync(`/proc/${pid}/environ`, 'utf8').includes(user.home);
      } catch {
        return false; // the process has ended
      }
    });
}

/** Peak resident memory of the process. */
function peakBytes(pid: number): number {
  return Number(/^VmHWM:\s*(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024;
}

function bytesBelow(folder: string): number {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);
}

it('--measure gives seconds and tokens of an iteration, and leaves nothing behind', async () => {
  user.recipe('recipe.yaml', { trainer: { total_training_steps: 50 } });
  const temporary = join(user.folder, 'temporary');
  mkdirSync(temporary);
  const before = readdirSync(user.home);
  const planned = await user.petrelWith({ env: { TMPDIR: temporary } }, 'plan', 'recipe.yaml', '--measure', '--json');
  expect(planned.code, planned.err).toBe(0);
  const { measured } = planned.json<{ measured: Record<string, number> }>();
  const { responses, seconds = 0, tokensPerSecond = 0, iterationSeconds = 0, runSeconds = 0 } = measured;
  expect(responses).toBe(32);
  expect(seconds).toBeGreaterThan(0);
  // 32 sequences of 2 to 14 tokens each.
  expect((tokensPerSecond * seconds) / 32).toBeGreaterThan(2);
  expect((tokensPerSecond * seconds) / 32).toBeLessThanOrEqual(14);
  expect(runSeconds).toBeCloseTo(50 * iterationSeconds, 6);
  expect(readdirSync(temporary)).toEqual([]);
  expect(readdirSync(user.home)).toEqual(before);
});
