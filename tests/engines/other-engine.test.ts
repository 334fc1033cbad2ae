// @module-tag engines
/** A run on a real stack that goes on with another number of processes, with another engine, and back. */
import { readFileSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { petrelHome } from '../../infra/home.ts';
import { poll } from '../../infra/poll.ts';
import { PetrelUser } from '../black-box/petrel.ts';
import { patienceMs } from '../patience.ts';

const user = new PetrelUser();
beforeAll(() => symlinkSync(join(petrelHome(), 'engines'), join(user.home, 'engines')));
afterAll(() => user.remove());

interface Term {
  readonly components: { readonly actor: { readonly profile: { readonly engine: string; readonly ranks?: number } } };
  readonly parent?: { readonly position: number };
}

interface Status {
  readonly workers: readonly { readonly lastError?: unknown }[];
}

async function petrel(...words: readonly string[]): Promise<string> {
  const ran = await user.petrel(...words);
  expect(ran.code, `${words.join(' ')}\n${ran.out}\n${ran.err}`).toBe(0);
  return ran.out + ran.err;
}

const runFolder = (): string => {
  const runs = join(user.folder, 'store/runs');
  return join(runs, readdirSync(runs)[0] ?? 'none');
};

function terms(): Term[] {
  const folder = join(runFolder(), 'terms');
  const numbers = readdirSync(folder).sort((a, b) => Number(a) - Number(b));
  return numbers.map((n) => JSON.parse(readFileSync(join(folder, n, 'term.json'), 'utf8')) as Term);
}

it('continues from its checkpoint, and applies the batches after it again', async () => {
  user.recipe('recipe.yaml', {
    store: './store',
    deterministic: false,
    trainer: { engine: 'torch', fsdp_size: 2, total_training_steps: 3, save_freq: 2 },
  });
  await petrel('run', 'recipe.yaml', '--name', 'moved', '--wait');
  // Only the checkpoint after iteration 2 is left.
  const [checkpoints, results] = [join(runFolder(), 'checkpoints'), join(runFolder(), 'results')];
  for (const manifest of readdirSync(checkpoints)) if (!manifest.startsWith('2-')) rmSync(join(checkpoints, manifest));
  for (const result of readdirSync(results)) if (result.startsWith('checkpoint-')) rmSync(join(results, result));
  const resumed = async (steps: number, ...changes: readonly string[]) =>
    petrel('resume', 'moved', ...changes, `trainer.total_training_steps=${steps}`, '--accept', '--wait');
  expect(await resumed(4, 'trainer.engine=native', 'trainer.fsdp_size=1')).toMatch(
    /native in place of torch in 2 processes: .* after iteration 2 .* batches of iteration 3 again/,
  );
  expect(await petrel('ckpt', 'verify', 'moved')).toContain('all is well');
  await resumed(5, 'trainer.engine=torch', 'trainer.fsdp_size=3');
  await resumed(6, 'trainer.fsdp_size=1');
  const profiles = terms().map(({ components }) => components.actor.profile);
  expect(profiles.map(({ engine, ranks }) => [engine, ranks])).toEqual([
    ['torch', 2],
    ['native', undefined],
    ['torch', 3],
    ['torch', undefined],
  ]);
  expect(terms().map(({ parent }) => parent?.position)).toEqual([undefined, 2, 4, 5]);
  expect(await petrel('ledger', 'verify', 'moved', '--deep')).toContain('every record is in its place');
  const { workers } = JSON.parse((await user.petrel('status', '--json')).out) as Status;
  expect(workers.map(({ lastError }) => lastError)).toEqual([undefined]);
});

it('goes back without a checkpoint of the other engine', async () => {
  user.recipe('back.yaml', {
    store: './back',
    deterministic: false,
    trainer: { engine: 'torch', total_training_steps: 2, save_freq: 2 },
  });
  await petrel('run', 'back.yaml', '--name', 'back', '--wait');
  const native = ['trainer.engine=native', 'trainer.total_training_steps=400', 'trainer.save_freq=400', '--accept'];
  await petrel('resume', 'back', ...native);
  await petrel('pause', 'back');
  const state = async () => (await user.petrel('status', 'back', '--json')).json<{ readonly state: string }>().state;
  expect(await poll(async () => (await state()) === 'paused', { everyMs: 200, timeoutMs: patienceMs })).toBe(true);
  // Its newest term is native's, and every checkpoint torch's.
  expect(await petrel('ckpt', 'verify', 'back')).toContain('all is well');
  expect(await petrel('resume', 'back', 'trainer.engine=torch', '--accept')).toMatch(
    /torch in place of native: the run continues after iteration 2 /,
  );
  await petrel('cancel', 'back', '--yes');
});

it('goes on with another sampler, also where it trains an adapter', async () => {
  user.recipe('adapter.yaml', {
    store: './adapter',
    deterministic: false,
    model: { lora_rank: 4 },
    rollout: { name: 'hf' },
    trainer: { engine: 'torch', total_training_steps: 1 },
  });
  await petrel('run', 'adapter.yaml', '--name', 'adapter', '--wait');
  await petrel('resume', 'adapter', 'rollout.name=vllm', 'trainer.total_training_steps=2', '--accept', '--wait');
  expect(await petrel('ledger', 'verify', 'adapter', '--deep')).toContain('every record is in its place');
  const ran = await user.petrel('resume', 'adapter', 'trainer.engine=native', '--accept');
  expect(ran.err).toContain('the engine native has no low-rank adapters');
});

it('is not forked with another engine, but resumed', async () => {
  const ran = await user.petrel('fork', 'moved', 'trainer.engine=native');
  expect(ran.code).not.toBe(0);
  expect(ran.err).toContain('trainer.engine');
});
