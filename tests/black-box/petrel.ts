/**
 * petrel as its user knows it: a command line, files and processes, in a home and a working folder of its own.
 *
 * Tests on this harness import nothing else of petrel, so they run unchanged on another built checkout:
 * `PETREL_UNDER_TEST=/path/to/checkout npx vitest run tests/black-box`.
 */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { borrowHome } from '../lent-homes.ts';
import type { LentHome } from '../lent-homes.ts';
import { patienceMs } from '../patience.ts';

const ownRoot = resolve(dirname(fileURLToPath(import.meta.url)), '../..');

/** The built checkout under test. */
export const root = resolve(process.env['PETREL_UNDER_TEST'] || ownRoot);
export const petrelBin = join(root, 'cli/bin.mjs');

const toolchain = join(process.env['PETREL_HOME'] || join(homedir(), '.petrel'), 'toolchain');

export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  /** `out`, parsed. Throws with everything that the command printed when it is not JSON. */
  json<T>(): T;
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

export class PetrelUser {
  /** PETREL_HOME, with the toolchain of the machine's real home. */
  readonly home: string;
  /** The working folder of every command. */
  readonly folder: string;
  readonly #temporary: string;
  readonly #lent: LentHome | undefined;

  /** `lent`: a home that others have used before; by default the user has one of its own. */
  constructor(lent?: LentHome) {
    this.#lent = lent;
    this.#temporary = realpathSync(mkdtempSync(join(tmpdir(), 'petrel-user-')));
    this.home = lent?.home ?? join(this.#temporary, 'home');
    this.folder = join(this.#temporary, 'work');
    mkdirSync(this.folder);
    if (lent !== undefined) return;
    mkdirSync(this.home, { mode: 0o700 });
    symlinkSync(toolchain, join(this.home, 'toolchain'));
  }

  /**
   * A user whose home may have a running stack, and runs of other test files. For tests that need a stack that runs,
   * with the environment of nobody in particular, and that neither damage nor change it.
   */
  static onLentStack(): PetrelUser {
    return new PetrelUser(borrowHome('user', toolchain));
  }

  /** Environment variables of every command. */
  env(more: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
    return { ...process.env, PETREL_HOME: this.home, NO_COLOR: '1', ...more };
  }

  /** Runs a command to its end, without a terminal and without standard input. */
  petrel(...words: readonly string[]): Promise<Ran> {
    return this.petrelWith({}, ...words);
  }

  async petrelWith({ env = {}, cwd = this.folder }: RunOptions, ...words: readonly string[]): Promise<Ran> {
    const child = this.start(words, { env: this.env(env), cwd, stdio: ['ignore', 'pipe', 'pipe'] });
    return finish(child, `petrel ${words.join(' ')}`);
  }

  /**
   * Starts a command and returns at once: for Ctrl-C, kills and commands that follow. `bin`: command of another
   * checkout.
   */
  start(words: readonly string[], options: SpawnOptions = {}, bin = petrelBin): ChildProcess {
    return spawn(process.execPath, [bin, ...words], { cwd: this.folder, env: this.env(), ...options });
  }

  /** Writes a file below the working folder and returns its path. */
  write(path: string, content: string | object): string {
    const file = join(this.folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, typeof content === 'string' ? content : `${JSON.stringify(content, null, 2)}\n`);
    return file;
  }

  read(path: string): string {
    return readFileSync(join(this.folder, path), 'utf8');
  }

  /**
   * A recipe on example 01's base (0.9 M parameters) with `rows` additions: two iterations take about a second. The
   * sections in `more` replace keys of the ones given here. JSON is valid YAML.
   */
  recipe(path = 'recipe.yaml', more: Readonly<Record<string, object | string | boolean>> = {}, rows = 32): string {
    cpSync(join(root, 'examples/01-arithmetic-grpo/base'), join(this.folder, 'base'), { recursive: true });
    this.write('train.jsonl', additions(rows));
    const sections: Record<string, object | string | boolean> = {
      model: { path: './base' },
      data: { train_files: './train.jsonl', train_batch_size: 8, max_prompt_length: 8, max_response_length: 6 },
      rollout: { n: 4 },
      actor: { ppo_mini_batch_size: 8, optim: { lr: 1e-4 } },
      reward: { scorer: 'exact' },
      trainer: { total_training_steps: 2, save_freq: 1 },
    };
    for (const [name, section] of Object.entries(more)) {
      const before = sections[name];
      sections[name] = typeof section === 'object' && typeof before === 'object' ? { ...before, ...section } : section;
    }
    return this.write(path, sections);
  }

  /** Stops the stack of this home or gives it back, then removes what is the user's own. */
  async remove(): Promise<void> {
    if (this.#lent !== undefined && (await this.#isAtRest())) this.#lent.giveBack();
    else await this.petrel('down');
    rmSync(this.#temporary, { recursive: true, force: true, maxRetries: 3 });
  }

  /** True when no run of this home works or waits for a worker. */
  async #isAtRest(): Promise<boolean> {
    const runs = (await this.petrel('ls', '--json')).json<readonly { readonly state: string }[]>();
    return runs.every(({ state }) => state !== 'queued' && state !== 'running');
  }
}

/** Resolves with the exit code of a process and what it printed. Kills one that never ends, and rejects. */
export function finish(child: ChildProcess, what: string): Promise<Ran> {
  const texts = { out: '', err: '' };
  child.stdout?.setEncoding('utf8').on('data', (text: string) => void (texts.out += text));
  child.stderr?.setEncoding('utf8').on('data', (text: string) => void (texts.err += text));
  return new Promise((resolveRan, reject) => {
    const limit = setTimeout(() => {
      child.kill('SIGKILL');
      reject(new Error(`${what} had not ended after ${patienceMs} ms\n${texts.out}\n${texts.err}`));
    }, patienceMs);
    child.on('error', reject);
    child.on('close', (code, signal) => {
      clearTimeout(limit);
      const { out, err } = texts;
      resolveRan({ code: code ?? (signal ? 128 : -1), out, err, json: <T>() => parse<T>(what, out, err) });
    });
  });
}

function parse<T>(what: string, out: string, err: string): T {
  try {
    return JSON.parse(out) as T;
  } catch (cause) {
    throw new Error(`${what} printed no JSON:\n${out}\n${err}`, { cause });
  }
}

/** Rows of two-digit additions in the form of example 01. */
export function additions(rows: number): string {
  const lines = readFileSync(join(root, 'examples/01-arithmetic-grpo/train.jsonl'), 'utf8').split('\n', rows);
  return `${lines.join('\n')}\n`;
}
