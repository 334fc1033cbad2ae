/**
 * A machine as somebody else has it: variables, files in the user's home and limits of the shell; and commands on it.
 */
import { execFile } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { packageRoot } from '../../infra/home.ts';

/** What is peculiar about a machine. */
export interface Peculiar {
  readonly env?: Readonly<Record<string, string>>;
  /** Files below the user's home. */
  readonly files?: Readonly<Record<string, string>>;
  /** A line of the shell before each command, such as `ulimit -n 64`. */
  readonly first?: string;
}

export interface Ended {
  readonly code: number;
  readonly text: string;
  /** The last line of `text`. */
  readonly last: string;
}

/** How this machine reaches package indexes stays: a test machine cannot do without it. */
const reach =
  /^(PIP_(FIND_LINKS|INDEX_URL|CERT|DEFAULT_TIMEOUT)|npm_config_(cache|registry)|.*_proxy|(SSL_CERT|NODE_EXTRA_CA|REQUESTS_CA).*)$/i;

export class Machine {
  /** Folder of everything; the user's home is in it. */
  readonly folder = mkdtempSync(join(tmpdir(), 'petrel-machine-'));
  readonly user = join(this.folder, 'user');
  readonly petrelHome = join(this.folder, 'petrel');
  readonly #peculiar: Peculiar;

  constructor(peculiar: Peculiar) {
    this.#peculiar = peculiar;
    for (const folder of [this.user, this.petrelHome]) mkdirSync(folder, { mode: 0o700 });
    const own = join(homedir(), '.npmrc');
    if (existsSync(own)) copyFileSync(own, join(this.user, '.npmrc'));
    for (const [path, text] of Object.entries(peculiar.files ?? {})) this.write(path, text);
  }

  /** The servers that set-up has fetched on the real machine. */
  useToolchain(): void {
    symlinkSync(
      join(process.env['PETREL_HOME'] || join(homedir(), '.petrel'), 'toolchain'),
      join(this.petrelHome, 'toolchain'),
    );
  }

  /** Adds to a file below the user's home. */
  write(path: string, text: string): void {
    const file = join(this.user, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, `${existsSync(file) ? `${readFileSync(file, 'utf8')}\n` : ''}${text}\n`);
  }

  petrel(...words: readonly string[]): Promise<Ended> {
    return this.run(process.execPath, join(packageRoot(), 'cli/bin.mjs'), ...words);
  }

  /** Runs a command to its end. Never rejects. */
  run(...command: readonly string[]): Promise<Ended> {
    const script = `${this.#peculiar.first ?? ':'}; exec "$@"`;
    const options = { cwd: this.folder, env: this.#env(), maxBuffer: 1 << 26 };
    return new Promise((resolve) => {
      execFile('bash', ['-c', script, 'bash', ...command], options, (error, stdout, stderr) => {
        const text = `${stdout}${stderr}`.trim();
        const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 128;
        resolve({ code, text, last: text.split('\n').at(-1) ?? '' });
      });
    });
  }

  async remove(): Promise<void> {
    await this.petrel('down');
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 3 });
  }

  #env(): NodeJS.ProcessEnv {
    const needed = Object.entries(process.env).filter(([name]) => reach.test(name));
    return {
      ...Object.fromEntries(needed),
      PATH: process.env['PATH'],
      HOME: this.user,
      PETREL_HOME: this.petrelHome,
      NO_COLOR: '1',
      ...this.#peculiar.env,
    };
  }
}
