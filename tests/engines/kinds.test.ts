// @module-tag engines
/** Every kind of run on torch, with all weights and with an adapter: what a run trains beside its policy, too. */
import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { exportPolicy } from '../../api/checkpoints/export.ts';
import { at } from '../../core/at.ts';
import type { Tree } from '../../core/recipe/index.ts';
import { soundMetrics } from '../algorithm-recipes.ts';
import { InProcessLoop, sevens } from '../in-process-loop.ts';
import { hfHere, torchHere } from './engines-here.ts';

const ranks: ChildProcess[] = [];
const engines = [torchHere({ onStart: (child) => void ranks.push(child) }), hfHere()];
const loop = new InProcessLoop(sevens, { engines });
beforeAll(async () => {
  await loop.up();
  await loop.inputs.writeTeacher();
});
afterAll(() => loop.remove());

const onTorch = (more: Tree): Tree => ({
  rollout: { name: 'hf' },
  deterministic: false,
  ...more,
  trainer: { engine: 'torch', total_training_steps: 2, save_freq: 1, ...(more['trainer'] as Tree | undefined) },
});

describe.each<readonly [string, Tree]>([
  ['all weights', {}],
  ['an adapter', { lora_rank: 4, lora_alpha: 8 }],
])('with %s', (_, model) => {
  it.each<readonly [string, Tree, readonly string[]]>([
    ['supervised', { kind: 'sft' }, ['actor']],
    ['by pairs, against a reference', { kind: 'dpo' }, ['actor']],
    ['a reward model', { kind: 'rm' }, ['rewardModel']],
    ['PPO with a critic', { algorithm: { adv_estimator: 'gae' } }, ['actor', 'critic']],
    ['with a KL penalty', { algorithm: { use_kl_in_reward: true } }, ['actor']],
    [
      'from a teacher',
      { distillation: { enabled: true, distillation_loss: { loss_mode: 'k3', use_task_rewards: false } } },
      ['actor'],
    ],
  ])('%s', async (__, changes, components) => {
    const { distillation } = changes as { readonly distillation?: Tree };
    const teacher = { teacher_model: { model_path: loop.inputs.teacher } };
    const more = { ...changes, ...(distillation && { distillation: { ...distillation, ...teacher } }) };
    const { iterations, weights } = await loop.completed(onTorch({ ...more, model }));
    soundMetrics(iterations);
    expect(iterations.map(({ update }) => Object.keys(update.components).sort())).toEqual([components, components]);
    expect(new Set(weights).size).toBe(3);
  });
});

it.each(['fp32', 'bf16'])('a policy that was trained in %s is exported', async (compute) => {
  const folder = join(loop.folder, compute);
  const run = await loop.completed(onTorch({ kind: 'sft', model: { compute_dtype: compute } }));
  expect(await exportPolicy(run.log, { folder, dtype: 'fp32' }, { home: loop.folder })).toMatchObject({
    dtype: 'float32',
    isAdapter: false,
  });
});

/** The weights of an undisturbed run, which one whose rank is killed after each update must have, too. */
async function weightsInSpiteOfKills(given: Tree): Promise<readonly string[]> {
  const undisturbed = await loop.completed(given);
  let kills = 0;
  const killed = await loop.completed(given, {
    committed: async () => void (kills += ranks.at(-1)?.kill('SIGKILL') ? 1 : 0),
  });
  expect(kills).toBeGreaterThan(0);
  expect(killed.weights).toEqual(undisturbed.weights);
  return undisturbed.weights;
}

describe('ranks that share', () => {
  it.each<readonly [string, Tree]>([
    ['the tokens', { ulysses_sequence_parallel_size: 2 }],
    ['the matrices', { tensor_model_parallel_size: 2 }],
  ])('%s of a micro-batch have the bits of an undisturbed run when one is killed', async (_, division) => {
    const given = onTorch({ kind: 'sft', trainer: { fsdp_size: 2, ...division }, deterministic: true });
    const weights = await weightsInSpiteOfKills(given);
    const alone = await loop.completed(onTorch({ kind: 'sft', deterministic: true }));
    expect(at(alone.weights, 0)).toBe(at(weights, 0));
  });
});

describe('an adapter', () => {
  const model = { lora_rank: 4, lora_alpha: 8 };

  it('has the bits of an undisturbed run when a rank is killed after each update', async () => {
    const given = onTorch({ kind: 'sft', model, trainer: { fsdp_size: 2 }, deterministic: true });
    await weightsInSpiteOfKills(given);
  });

  it('of a reward model goes on from the head that its base has', async () => {
    const folder = join(loop.folder, 'reward-model');
    const whole = await loop.completed(onTorch({ kind: 'rm' }));
    await exportPolicy(whole.log, { folder }, { home: loop.folder });
    const { weights } = await loop.completed(onTorch({ kind: 'rm', model: { ...model, path: folder } }));
    expect(new Set(weights).size).toBe(3);
    // The head of another base is another state at the start.
    const others = await loop.completed(onTorch({ kind: 'rm', model }));
    expect(others.weights[0]).not.toBe(weights[0]);
  });

  it('goes on in another run from where it was exported', async () => {
    const folder = join(loop.folder, 'adapter');
    const first = await loop.completed(onTorch({ kind: 'sft', model }));
    await exportPolicy(first.log, { folder }, { home: loop.folder });
    const second = await loop.completed(onTorch({ kind: 'sft', model: { lora_adapter_path: folder } }));
    expect(at(second.weights, 0)).toBe(at(first.weights, -1));
    expect(at(second.weights, -1)).not.toBe(at(second.weights, 0));
  });
});
