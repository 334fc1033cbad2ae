// @module-tag long
/**
 * `trainer.logger: file` writes a row for each committed iteration, no matter which processes are killed or what is
 * repeated.
 */
import { appendFileSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { PetrelUser } from './petrel.ts';

const user = new PetrelUser();
afterAll(() => user.remove());

interface Row {
  readonly step: number;
  readonly term: number;
  readonly data: Readonly<Record<string, number>>;
}

it('has every committed iteration once, after kills, with its validations', async () => {
  user.recipe('recipe.yaml', {
    data: { val_files: './train.jsonl', val_max_samples: 4 },
    trainer: { logger: 'file', total_training_steps: 12, save_freq: 3, test_freq: 6 },
  });
  const run = await user.petrel('run', 'recipe.yaml', '--name', 'killed', '--detach', '--json');
  expect(run.code, run.err).toBe(0);
  const { runId } = run.json<{ runId: string }>();
  const file = join(user.folder, 'petrel', `${runId}.jsonl`);
  expect(run.err).toContain(`metrics are written to ${file}`);

  await expect.poll(() => steps(file).length).toBeGreaterThan(2);
  for (const pid of processes()) process.kill(pid, 'SIGKILL');
  appendFileSync(file, '{"step": 99, "ter'); // the leftover of a write that was interrupted
  await user.petrel('up');
  const rows = await complete(runId, file);
  expect(rows.map(({ step }) => step)).toEqual(Array.from({ length: 13 }, (_, step) => step));
  expect(
    rows.filter(({ data }) => Object.keys(data).some((name) => name.startsWith('val'))).map(({ step }) => step),
  ).toEqual([0, 6, 12]);
  await expectSame(rows, runId);
});

it('follows a run that goes back, and one that is resumed', async () => {
  user.recipe('recipe.yaml', {
    trainer: { logger: ['console', 'file'], project_name: 'sums', total_training_steps: 4 },
  });
  const run = await user.petrel('run', 'recipe.yaml', '--name', 'back', '--detach', '--json');
  const { runId } = run.json<{ runId: string }>();
  const file = join(user.folder, 'sums', `${runId}.jsonl`);
  const first = await complete(runId, file);
  expect(first.map(({ step, term }) => [step, term])).toEqual([1, 2, 3, 4].map((step) => [step, 1]));

  const back = await user.petrel(
    'resume',
    runId,
    '--from',
    '2',
    '--accept',
    'trainer.total_training_steps=5',
    '--wait',
    '--json',
  );
  expect(back.code, back.err).toBe(0);
  const rows = await complete(runId, file);
  expect(rows.map(({ step, term }) => [step, term])).toEqual([
    [1, 1],
    [2, 1],
    [3, 2],
    [4, 2],
    [5, 2],
  ]);
  await expectSame(rows, runId);
});

it('takes a bare name, as verl does, and refuses one that is not built', async () => {
  user.recipe();
  expect((await user.petrel('plan', 'recipe.yaml', 'trainer.logger=console', '--json')).code).toBe(0);
  const refused = await user.petrel('plan', 'recipe.yaml', 'trainer.logger=wandb');
  expect(refused).toMatchObject({ code: 2, err: expect.stringContaining('console, file') });
});

const rowsIn = (file: string): Row[] =>
  existsSync(file)
    ? readFileSync(file, 'utf8')
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line) as Row)
    : [];
const steps = (file: string): number[] => rowsIn(file).map(({ step }) => step);

/** The rows when the run has completed and the control process no longer writes its file. */
async function complete(runId: string, file: string): Promise<Row[]> {
  const state = async () => (await user.petrel('status', runId, '--json')).json<{ state: string }>().state;
  await expect.poll(state).toBe('completed');
  await expect.poll(() => existsSync(join(user.home, 'metrics-files', `${runId}.json`))).toBe(false);
  return rowsIn(file);
}

async function expectSame(rows: readonly Row[], runId: string): Promise<void> {
  const shown = (await user.petrel('metrics', runId, '--json', '--last', '100')).json<
    readonly { iteration: number; metrics: Row['data']; timings: Row['data'] }[]
  >();
  expect(rows.map(({ step, data }) => ({ step, data }))).toEqual(
    shown.map(({ iteration, metrics, timings }) => ({ step: iteration, data: { ...metrics, ...timings } })),
  );
}

/** Processes of the stack of this home. */
function processes(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .map(Number)
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`PETREL_HOME=${user.home}`);
      } catch {
        return false; // the process has ended
      }
    });
}
