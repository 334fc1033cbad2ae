// @module-tag long
/** Runs that are not deterministic, on processors that compute otherwise. PETREL_ISA lowers this one's class. */
import { existsSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { PetrelUser } from './petrel.ts';
import { seenRun, seenWorker, startSecondWorker, until } from './second-worker.ts';

const flags = readFileSync('/proc/cpuinfo', 'utf8');
const hasBf16 = flags.includes(' avx512_bf16');
const user = new PetrelUser();
afterAll(() => user.remove());
afterEach(() => user.petrel('down'));

interface Term {
  readonly reason: string;
  readonly components: { readonly actor: { readonly profile: { readonly compute: string; readonly device: string } } };
  readonly parent?: { readonly position: number };
  readonly adopts?: { readonly until: number };
}

const runFolder = (name: string): string => {
  const runs = join(user.folder, 'store/runs');
  return join(runs, readdirSync(runs).find((run) => run.startsWith(`${name}-`)) ?? 'none');
};
const terms = (name: string): Term[] => {
  const folder = join(runFolder(name), 'terms');
  return readdirSync(folder)
    .sort((a, b) => Number(a) - Number(b))
    .map((term) => join(folder, term, 'term.json'))
    .filter((file) => existsSync(file)) // its folder is made first
    .map((file) => JSON.parse(readFileSync(file, 'utf8')) as Term);
};

const isa = (name: string) => ({ env: { PETREL_ISA: name } });
async function petrel(options: object, ...words: readonly string[]): Promise<string> {
  const ran = await user.petrelWith(options, ...words);
  expect(ran.code, `${words.join(' ')}\n${ran.out}\n${ran.err}`).toBe(0);
  return ran.out + ran.err;
}

/** Runs four iterations on one class of processor, then loses the checkpoints after the second, and the machine. */
async function leftAfterFour(name: string, compute: string, first: string): Promise<void> {
  user.recipe(`${name}.yaml`, {
    store: './store',
    model: { path: './base', compute_dtype: compute },
    trainer: { total_training_steps: 4, save_freq: 2 },
  });
  await petrel(isa(first), 'up');
  await petrel(isa(first), 'run', `${name}.yaml`, '--name', name, '--wait');
  await petrel({}, 'down');
  const checkpoints = join(runFolder(name), 'checkpoints');
  for (const manifest of readdirSync(checkpoints)) if (!manifest.startsWith('2-')) rmSync(join(checkpoints, manifest));
  const results = join(runFolder(name), 'results');
  for (const result of readdirSync(results)) if (result.startsWith('checkpoint-')) rmSync(join(results, result));
}

describe.skipIf(!hasBf16)('a run in bf16 (this processor has it)', () => {
  it('leaves its jobs to workers that compute in bf16, and status says why', async () => {
    user.recipe('auto.yaml', { store: './store', trainer: { total_training_steps: 400, save_freq: 100 } });
    await petrel({}, 'up');
    await petrel({}, 'run', 'auto.yaml', '--name', 'auto', '--detach');
    await seenWorker(user, 'local-1', ({ jobs }) => jobs.length > 0);
    const lower = await startSecondWorker(user, { name: 'lower-1', env: { PETREL_ISA: 'avx2' } });
    try {
      const good = await seenWorker(user, 'local-1', () => true);
      process.kill(good.pid, 'SIGSTOP');
      try {
        const { lastError } = await seenWorker(user, 'lower-1', (worker) => worker.lastError !== undefined);
        expect(lastError).toMatchObject({ code: 'CannotCompute', message: expect.stringContaining('bf16') });
      } finally {
        process.kill(good.pid, 'SIGCONT');
      }
      await petrel({}, 'cancel', 'auto', '--yes');
    } finally {
      lower.kill('SIGKILL');
    }
    expect(terms('auto')).toMatchObject([{ components: { actor: { profile: { compute: 'bf16' } } } }]);
  });

  it('that moves to processors without it goes on in fp32 in a new term', async () => {
    await leftAfterFour('moved', 'auto', 'avx512_bf16');
    await petrel(isa('avx2'), 'up');
    const said = await petrel(isa('avx2'), 'resume', 'moved', 'trainer.total_training_steps=6', '--accept', '--wait');
    expect(said).toContain('no trainer here computes with the profile bf16, only with fp32');
    expect(terms('moved')).toMatchObject([
      { components: { actor: { profile: { compute: 'bf16' } } } },
      {
        reason: expect.stringMatching(/^engine/),
        components: { actor: { profile: { compute: 'fp32' } } },
        parent: { position: 2 },
        adopts: { until: 4 },
      },
    ]);
    await petrel({}, 'ledger', 'verify', 'moved', '--deep');
  });
});

describe.skipIf(!hasBf16)('compute: auto', () => {
  it('becomes what every worker of the pool computes in', async () => {
    user.recipe('common.yaml', { store: './store', trainer: { total_training_steps: 2 } });
    await petrel({}, 'up');
    const lower = await startSecondWorker(user, { name: 'lower-1', env: { PETREL_ISA: 'avx2' } });
    try {
      await petrel({}, 'run', 'common.yaml', '--name', 'common', '--wait');
    } finally {
      lower.kill('SIGKILL');
    }
    expect(terms('common')).toMatchObject([{ components: { actor: { profile: { compute: 'fp32' } } } }]);
  });
});

describe('a run that is not deterministic, on a machine that computes otherwise', () => {
  const otherMachine = { env: { PETREL_PRELOAD: join(import.meta.dirname, 'perturbed-engine.mjs') } };

  it('applies its batches again in a new term, asks nobody, and does so whenever its trainer dies', async () => {
    await leftAfterFour('again', 'fp32', 'avx2');
    await petrel(otherMachine, 'up');
    const more = ['trainer.total_training_steps=60', 'trainer.save_freq=30', '--accept'];
    await petrel(otherMachine, 'resume', 'again', ...more);
    const reasons = () => terms('again').map(({ reason }) => reason);
    const updated = (k: number) =>
      existsSync(join(runFolder('again'), `terms/${terms('again').length}/${k}/update.json`));
    const { pid } = await seenWorker(user, 'local-1', () => true);
    await until('iteration 8', async () => updated(8) || undefined);
    process.kill(pid, 'SIGKILL');
    expect(reasons()).toEqual(['start', expect.stringMatching(/^changed recipe/), 'replay']);
    expect(terms('again').at(-1)).toMatchObject({ parent: { position: 2 }, adopts: { until: 4 } });
    await seenRun(user, 'again', ({ state }) => state === 'completed');
    expect(reasons().slice(3)).toEqual(['replay']);
    await petrel({}, 'ledger', 'verify', 'again', '--deep');
  });
});
