// @module-tag long
/**
 * A power cut at any system call of a run. After each cut the ledger is valid, nothing is lost that a user has seen,
 * and the run continues to the same weights. The calls are recorded from a real run (tests/power-cut).
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Recording } from '../power-cut/calls.ts';
import { cutsOf } from '../power-cut/cuts.ts';
import type { Cut } from '../power-cut/cuts.ts';
import { Disk } from '../power-cut/disk.ts';
import { Recorder } from '../power-cut/recorder.ts';
import { finish, PetrelUser, root } from './petrel.ts';

const seed = 20261122;
/** Number of cuts, spread over the recording, after which the run is continued. Each has a separate stack. */
const resumes = 2;

/** What the user was told about the run. */
interface Told {
  readonly position: number;
  readonly state?: string;
}

interface RunVerdict {
  readonly runId: string;
  readonly state: string;
  readonly position: number;
  readonly faults: readonly { readonly key: string; readonly expected: string; readonly found: string }[];
}

describe(`a power cut at any call of a run (seed ${seed})`, () => {
  const user = new PetrelUser();
  const disk = join(user.folder, 'disk');
  const recorder = new Recorder(disk, join(user.folder, 'recording'));
  const verifier = new Verifier();
  const after = join(user.folder, 'after');
  let recording: Recording;
  let cuts: Cut[];

  beforeAll(async () => {
    mkdirSync(disk);
    await recordRun(user, recorder);
    recording = recorder.read();
    cuts = cutsOf(new Disk(disk, recording), recording, seed);
  }, 300_000);
  afterAll(async () => {
    verifier.end();
    await user.remove();
  });

  it('leaves a ledger without faults that contains everything the user has seen', async () => {
    const broken = new Map<string, string[]>();
    for (const cut of cuts) {
      recorder.layOut(cut.state, after);
      const [run] = await verifier.verify(join(after, 'store'));
      const wrong = wrongWith(run, toldBefore(recording, cut.line));
      if (wrong !== undefined) broken.set(wrong, [...(broken.get(wrong) ?? []), titleOf(cut)]);
    }
    expect(worst(broken), `cuts after which something is wrong, of ${cuts.length}`).toEqual([]);
  }, 900_000);

  it(`lets the run continue to the same weights (${resumes} of the cuts)`, async () => {
    const undisturbed = statesOf(join(disk, 'store'));
    const begun = cuts.filter(({ line }) => isAtWork(toldBefore(recording, line)));
    for (let n = 0; n < resumes; n++) {
      const cut = await firstUnfinished(begun.slice((begun.length * n) / resumes));
      const states = await resumedStates(after);
      expect(states, titleOf(cut)).toEqual(undisturbed.slice(0, states.length));
      expect([3, 5], titleOf(cut)).toContain(states.length); // the recipe before or after the change
    }
  }, 600_000);

  /** The folder in which the state after the cut is laid out. */
  async function firstUnfinished(some: readonly Cut[]): Promise<Cut> {
    for (const cut of some) {
      recorder.layOut(cut.state, after);
      const [run] = await verifier.verify(join(after, 'store'));
      if (run?.state !== 'completed') return cut;
    }
    throw new Error('the run is completed after each of these cuts');
  }
});

const titleOf = ({ line, spared }: Cut): string => `a cut after line ${line} that spares ${spared}`;

/** The user knows the run, and it was not reported as completed. */
const isAtWork = (told: Told | undefined): boolean => told !== undefined && told.state === undefined;

/** What is wrong after the cut; undefined when nothing is. */
function wrongWith(run: RunVerdict | undefined, told: Told | undefined): string | undefined {
  if (run === undefined) return told && 'the run is gone';
  const faults = run.faults
    .slice(0, 3)
    .map(({ key, expected, found }) => `${key}: expected ${expected}, found ${found}`);
  if (faults.length > 0)
    return faults
      .join('; ')
      .replaceAll(/[0-9a-f]{64}/g, '<digest>')
      .replaceAll(run.runId, '<run>');
  if (told === undefined) return undefined;
  if (run.position < told.position) return `iteration ${told.position} was reported, the last one is ${run.position}`;
  if (told.state !== undefined && run.state !== told.state) return `${told.state} was reported, it is ${run.state}`;
  return undefined;
}

/** The faults that occur after most cuts, with their number and the first cut. */
function worst(broken: ReadonlyMap<string, readonly string[]>): string[] {
  return [...broken]
    .sort(([, a], [, b]) => b.length - a.length)
    .slice(0, 20)
    .map(([wrong, titles]) => `${titles.length}: ${wrong} (${titles[0]})`);
}

/** The end of the run in a new home, continued from a copy of the folder `disk`. */
async function resumedStates(disk: string): Promise<string[]> {
  const user = new PetrelUser();
  try {
    const store = join(user.folder, 'store');
    cpSync(join(disk, 'store'), store, { recursive: true });
    const [runId = ''] = readdirSync(join(store, 'runs'));
    const ran = await user.petrel('resume', runId, '--store', store, '--accept', '--wait');
    expect(ran.code, ran.out + ran.err).toBe(0);
    const verified = await user.petrel('ledger', 'verify', runId, '--deep', '--json');
    expect(verified.code, verified.out).toBe(0);
    return statesOf(store);
  } finally {
    await user.remove();
  }
}

/** State digests of the iterations of a store's only run, in order. */
function statesOf(store: string): string[] {
  const [runId = ''] = readdirSync(join(store, 'runs'));
  const terms = join(store, 'runs', runId, 'terms');
  const states: string[] = [];
  for (const path of readdirSync(terms, { recursive: true, encoding: 'utf8' })) {
    const [, k] = /^\d+\/(\d+)\/update\.json$/.exec(path) ?? [];
    const record =
      k && (JSON.parse(readFileSync(join(terms, path), 'utf8')) as { outcome: string; stateDigest: string });
    if (record && record.outcome !== 'seal') states[Number(k) - 1] = record.stateDigest;
  }
  return states;
}

/** Runs a run to its end on two workers, then more iterations in a second term, then the janitor. */
async function recordRun(user: PetrelUser, recorder: Recorder): Promise<void> {
  const recorded = (...words: readonly string[]) => user.petrelWith({ env: recorder.env }, ...words);
  user.recipe('recipe.yaml', {
    store: './disk/store',
    deterministic: true,
    trainer: { total_training_steps: 3, save_freq: 1, max_actor_ckpt_to_keep: 1 },
  });
  expect(await recorded('up', '--workers', '2')).toMatchObject({ code: 0 });
  await follow(user, recorder, ['run', 'recipe.yaml', '--name', 'cut', '--wait']);
  recorder.mark({ position: 3, state: 'completed' });
  recorder.mark({ position: 3 });
  await follow(user, recorder, ['resume', 'cut', 'trainer.total_training_steps=5', '--accept', '--wait']);
  recorder.mark({ position: 5, state: 'completed' });
  for (let pass = 0; pass < 3; pass++) expect(await recorded('gc', '--grace', '0s')).toMatchObject({ code: 0 });
  expect(await recorded('down')).toMatchObject({ code: 0 });
}

/** Marks in the recording the iterations that a command reports. */
async function follow(user: PetrelUser, recorder: Recorder, words: readonly string[]): Promise<void> {
  const child = user.start(words, { env: user.env(recorder.env), stdio: ['ignore', 'pipe', 'pipe'] });
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (text: Buffer) => {
      for (const [, k] of String(text).matchAll(/^iteration (\d+)\//gm)) recorder.mark({ position: Number(k) });
    });
  const ran = await finish(child, words.join(' '), 120_000);
  expect(ran.code, ran.out + ran.err).toBe(0);
}

function toldBefore({ marks }: Recording, line: number): Told | undefined {
  const last = marks.filter((mark) => mark.line <= line).at(-1);
  return last && (JSON.parse(last.told) as Told);
}

/** The verifier of the checkout under test, in a separate process. */
class Verifier {
  readonly #process: ChildProcess;
  readonly #answers: AsyncIterator<string>;

  constructor() {
    const script = join(dirname(fileURLToPath(import.meta.url)), '../power-cut/verify.mjs');
    this.#process = spawn(process.execPath, [script, root], { stdio: ['pipe', 'pipe', 'inherit'] });
    const { stdout } = this.#process;
    if (stdout === null) throw new Error('the verifier has no output');
    this.#answers = createInterface({ input: stdout })[Symbol.asyncIterator]();
  }

  async verify(folder: string): Promise<RunVerdict[]> {
    this.#process.stdin?.write(`${folder}\n`);
    const { value, done } = await this.#answers.next();
    if (done === true) throw new Error('the verifier ended');
    return JSON.parse(value) as RunVerdict[];
  }

  end(): void {
    this.#process.stdin?.end();
  }
}
