// @module-tag long
/**
 * pause, stop, resume and cancel, each given while something is down or dies. Once everything is up again, every run
 * must reach the desired state without another command.
 *
 * One stack serves all rows. For each fault there is one run per row; the commands of all rows are given during the
 * same fault. Nothing depends on time: `patienceMs` only ends a test that would hang.
 */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PetrelUser } from './petrel.ts';

const patienceMs = Number(process.env['PETREL_PATIENCE_MS'] || 60_000);

type State = 'queued' | 'running' | 'paused' | 'stopped' | 'cancelled' | 'completed' | 'failed';
type Command = 'pause' | 'stop' | 'resume' | 'cancel';

/**
 * The state of a run when the command is given, and the state that it must reach. Other pairs are refused: a stopped
 * run cannot be paused.
 */
const rows: readonly { readonly from: State; readonly command: Command; readonly to: State }[] = [
  { from: 'paused', command: 'resume', to: 'running' },
  { from: 'paused', command: 'stop', to: 'stopped' },
  { from: 'paused', command: 'cancel', to: 'cancelled' },
  { from: 'stopped', command: 'resume', to: 'running' },
  { from: 'running', command: 'pause', to: 'paused' },
  { from: 'running', command: 'stop', to: 'stopped' },
  { from: 'running', command: 'cancel', to: 'cancelled' },
];
type Row = (typeof rows)[number];

const user = new PetrelUser();
const faultsFolder = join(user.folder, 'faults');
const stackFolder = join(user.home, 'stack');

/** A run of one row, by its files in the store. */
class Run {
  readonly id: string;

  constructor(id: string) {
    this.id = id;
  }

  get #folder(): string {
    return join(user.home, 'store/runs', this.id);
  }

  get state(): State | undefined {
    return this.#newestStatus()?.state;
  }

  /** Committed updates. */
  get updates(): number {
    const terms = join(this.#folder, 'terms');
    if (!existsSync(terms)) return 0;
    return readdirSync(terms, { recursive: true }).filter((path) => String(path).endsWith('update.json')).length;
  }

  async becomes(state: State): Promise<void> {
    await until(() => this.state === state, `${this.id} to be ${state}; it is ${this.state}`);
  }

  #newestStatus(): { readonly state: State } | undefined {
    const folder = join(this.#folder, 'status');
    if (!existsSync(folder)) return undefined;
    const numbers = readdirSync(folder).flatMap((name) => /^(\d+)\.json$/.exec(name)?.[1] ?? []);
    const newest = Math.max(0, ...numbers.map(Number));
    return newest === 0 ? undefined : JSON.parse(readFileSync(join(folder, `${newest}.json`), 'utf8'));
  }
}

async function until(probe: () => boolean, what: string): Promise<void> {
  const deadline = performance.now() + patienceMs;
  while (!probe()) {
    if (performance.now() > deadline) throw new Error(`waited ${patienceMs} ms for ${what}`);
    await delay(50);
  }
}

/** Runs a command and expects that it succeeds. */
async function petrel(...words: readonly string[]): Promise<string> {
  const { code, out, err } = await user.petrel(...words);
  expect(code, `petrel ${words.join(' ')}\n${out}\n${err}`).toBe(0);
  return out;
}

const give = (command: Command, run: Run) => user.petrel(command, run.id, ...(command === 'cancel' ? ['--yes'] : []));

/**
 * A run of many iterations. Each mostly waits for its scorer, so that three in parallel do not use the whole processor.
 */
async function startRun(): Promise<Run> {
  const run = new Run(JSON.parse(await petrel('run', 'recipe.yaml', '--detach', '--json')).runId);
  await run.becomes('running');
  return run;
}

async function runIn(state: State): Promise<Run> {
  const run = await startRun();
  if (state === 'running') return run;
  await petrel(state === 'paused' ? 'pause' : 'stop', run.id);
  await run.becomes(state);
  return run;
}

function neverStarted({ from }: Row): never {
  throw new Error(`no ${from} run was started`);
}

interface StackFile {
  readonly pid: number;
  readonly children: readonly { readonly name: string; readonly state: string; readonly pid?: number }[];
}

const readStack = (): StackFile => JSON.parse(readFileSync(join(stackFolder, 'stack.json'), 'utf8'));

function isThere(pid: number): boolean {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

/** Kills a process of the stack, and keeps its supervisor from starting it again during `work`. */
async function whileDown(name: string, work: () => Promise<void>): Promise<void> {
  const { pid: supervisor, children } = readStack();
  const { pid } = children.find((child) => child.name === name) ?? {};
  if (pid === undefined) throw new Error(`the stack has no process ${name}`);
  process.kill(supervisor, 'SIGSTOP');
  try {
    process.kill(pid, 'SIGKILL');
    await until(() => !isThere(pid), `${name} to die`);
    await work();
  } finally {
    process.kill(supervisor, 'SIGCONT');
  }
}

/**
 * Gives all commands. `resume` needs the stack, so it is not waited for before `between`, which may bring the stack
 * back.
 */
async function giveAll(runs: ReadonlyMap<Row, Run>, between: () => Promise<void> | void = () => {}): Promise<void> {
  const given = (wanted: boolean) =>
    [...runs].filter(([{ command }]) => (command === 'resume') === wanted).map(([row, run]) => give(row.command, run));
  await Promise.all(given(false));
  const resumes = given(true);
  await between();
  await Promise.all(resumes);
}

/** Gives a command that is killed after it has recorded the desired state and before it can signal the workflow. */
async function giveAndKill(command: Command, run: Run): Promise<void> {
  const armed = { id: run.id, point: 'decide.after', facts: { kind: 'status', runId: run.id }, action: 'kill' };
  writeFileSync(join(faultsFolder, 'armed', `${run.id}.json`), JSON.stringify(armed));
  const words = [command, run.id, ...(command === 'cancel' ? ['--yes'] : [])];
  await user.petrelWith({ env: { PETREL_FAULTS: faultsFolder } }, ...words);
  rmSync(join(faultsFolder, 'armed', `${run.id}.json`));
  if (!existsSync(join(faultsFolder, 'fired', `${run.id}.json`))) throw new Error(`${words.join(' ')} was not killed`);
}

const databaseFiles = ['temporal.db', 'temporal.db-wal', 'temporal.db-shm'];

function copyDatabase(from: string, to: string): void {
  mkdirSync(to, { recursive: true });
  for (const file of databaseFiles) {
    rmSync(join(to, file), { force: true });
    if (existsSync(join(from, file))) cpSync(join(from, file), join(to, file));
  }
}

/** What is down or dies, and how the commands are given during this. */
const faults: readonly { readonly name: string; readonly give: (runs: ReadonlyMap<Row, Run>) => Promise<void> }[] = [
  {
    name: 'the whole stack is down',
    give: async (runs) => {
      await petrel('down');
      await giveAll(runs);
      await petrel('up');
    },
  },
  { name: 'the Temporal server is down', give: (runs) => duringDeathOf('temporal', runs) },
  { name: 'the NATS server is down', give: (runs) => duringDeathOf('nats', runs) },
  { name: 'the control process is down', give: (runs) => duringDeathOf('control', runs) },
  {
    name: 'the command dies between its record and its signal',
    give: async (runs) => {
      await Promise.all([...runs].map(([{ command }, run]) => giveAndKill(command, run)));
    },
  },
  {
    name: 'an older Temporal database is restored after the command',
    give: async (runs) => {
      const copy = join(user.folder, 'older');
      await petrel('down');
      copyDatabase(stackFolder, copy);
      await petrel('up');
      await giveAll(runs);
      await Promise.all([...runs].map(([{ to }, run]) => run.becomes(to)));
      await petrel('down');
      copyDatabase(copy, stackFolder);
      await petrel('up');
    },
  },
];

async function duringDeathOf(name: string, runs: ReadonlyMap<Row, Run>): Promise<void> {
  let resumes: Promise<unknown> = Promise.resolve();
  await whileDown(name, async () => {
    const rest = new Map([...runs].filter(([{ command }]) => command !== 'resume'));
    await giveAll(rest);
    resumes = Promise.all(
      [...runs].flatMap(([{ command }, run]) => (command === 'resume' ? [give(command, run)] : [])),
    );
  });
  await resumes;
}

beforeAll(async () => {
  for (const name of ['armed', 'fired']) mkdirSync(join(faultsFolder, name), { recursive: true });
  user.write(
    'slow.mjs',
    `export function computeScore() {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
  return Math.random();
}
`,
  );
  user.recipe('recipe.yaml', {
    data: { train_batch_size: 2 },
    rollout: { n: 2 },
    actor: { ppo_mini_batch_size: 2 },
    reward: { custom_reward_function: { path: './slow.mjs', name: 'computeScore' } },
    fleet: { pools: { local: { roles: ['trainer', 'rollout', 'reward'], workers: 3, threads: 1 } } },
    trainer: { total_training_steps: 100_000, save_freq: -1 },
  });
});
afterAll(() => user.remove());

describe.each(faults)('when $name', ({ name, give: giveDuring }) => {
  const runs = new Map<Row, Run>();
  /** Updates of each run when everything was up again: a running run makes more. */
  const before = new Map<Row, number>();
  const isThereYet = (row: Row): boolean => {
    const run = runs.get(row);
    if (run?.state !== row.to) return false;
    return row.to !== 'running' || run.updates > (before.get(row) ?? Infinity);
  };
  let failure: unknown;

  beforeAll(async () => {
    // A running run keeps its trainer, so the runs that are to be paused or stopped come first.
    for (const isAtRest of [true, false]) {
      const wave = rows.filter(({ from }) => (from !== 'running') === isAtRest);
      const started = await Promise.all(wave.map(({ from }) => runIn(from)));
      wave.forEach((row, i) => runs.set(row, started[i] ?? neverStarted(row)));
    }
    await giveDuring(runs);
    for (const [row, run] of runs) before.set(row, run.updates);
    // Each test below asserts its own row, so a timeout here is not an error.
    await until(() => rows.every(isThereYet), `the runs of "${name}"`).catch((error: unknown) => (failure = error));
  }, 600_000);

  it.each(rows)('a $from run that is told to $command becomes $to', (row) => {
    const run = runs.get(row);
    expect(run?.state, `${run?.id}; ${failure}`).toBe(row.to);
    if (row.to === 'running')
      expect(run?.updates, `updates of ${run?.id}`).toBeGreaterThan(before.get(row) ?? Infinity);
  });

  afterAll(async () => {
    const alive = [...runs.values()].filter(({ state }) => state === 'running' || state === 'paused');
    await Promise.all(alive.map((run) => give('cancel', run)));
    await Promise.all(alive.map((run) => run.becomes('cancelled').catch(() => undefined)));
  });
});
