/** Python environments of engines: `PETREL_HOME/engines/torch-cpu` and its like. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { InvalidInputError, TerminalError } from '../../core/errors.ts';
import { packageRoot } from '../../infra/home.ts';
import { readEnvironment, writeEnvironment } from '../../infra/engines/environment.ts';
import type { EngineEnvironment } from '../../infra/engines/environment.ts';
import { linesOf } from './lines-of.ts';

export const installableEngines = ['torch'] as const;
export const engineDevices = ['cpu', 'cuda'] as const;
/** The oldest Python 3 for which the list has wheels of every package. */
const leastPython = 11;

/** The command that installs an engine. */
export const installCommand = (engine: string, device: string): string =>
  device === 'cpu' ? `petrel engine install ${engine}` : `petrel engine install ${engine} --device cuda`;

export interface EngineInstall {
  readonly home: string;
  readonly engine: string;
  readonly device: string;
  /** A Python that has the packages already. Absent: they are installed. */
  readonly python?: string;
  /** Gets each line of what is done. */
  readonly onLine?: (line: string) => void;
}

export interface InstalledEngine {
  readonly environment: EngineEnvironment;
  readonly folder: string;
  /** It was there already. */
  readonly known: boolean;
}

/**
 * Installs what an engine needs, from the list with hashes that petrel has. Throws InvalidInputError for an engine or a
 * device that it does not know, TerminalError `EngineFailed` with the last line of what failed.
 */
export async function installEngine(request: EngineInstall): Promise<InstalledEngine> {
  const { home, engine, device, python } = request;
  requireKnown('engine', engine, installableEngines);
  requireKnown('device', device, engineDevices);
  const name = `${engine}-${device}`;
  const folder = join(home, 'engines', name);
  const list = join(packageRoot(), 'engines', engine, 'requirements.txt');
  const digest = createHash('sha256').update(readFileSync(list)).digest('hex');
  const found = readEnvironment(home, name);
  const isSame = python === undefined ? found?.list === digest : found?.python === python;
  if (found !== undefined && isSame && existsSync(found.python)) return { environment: found, folder, known: true };
  mkdirSync(folder, { recursive: true });
  const own = join(folder, 'venv/bin/python');
  if (python === undefined) await makeEnvironment(folder, list, request);
  const versions = await probe(python ?? own, request);
  const environment: EngineEnvironment = {
    python: python ?? own,
    device: device === 'cuda' ? 'cuda' : 'cpu',
    ...(python === undefined && { list: digest }),
    versions,
  };
  writeEnvironment(home, name, environment);
  return { environment, folder, known: false };
}

function requireKnown(what: string, word: string, known: readonly string[]): void {
  if (known.includes(word)) return;
  throw new InvalidInputError(`there is no ${what} ${word} to install`, { hint: `one of ${known.join(', ')}` });
}

/** The old environment stays until the new one is complete. */
async function makeEnvironment(folder: string, list: string, { onLine }: EngineInstall): Promise<void> {
  const version = 'import sys; print("%d.%d" % sys.version_info[:2])';
  const found = (await linesOf('python3', ['-E', '-c', version], 'python3')).at(-1) ?? '';
  const [major = 0, minor = 0] = found.split('.').map(Number);
  if (major !== 3 || minor < leastPython)
    throw new InvalidInputError(`python3 is Python ${found}; torch's packages need 3.${leastPython} or newer`, {
      hint: 'put a newer python3 first on PATH, or use --python with one that has the packages',
    });
  // A venv knows its own path: it is made where it stays.
  const [venv, old] = [join(folder, 'venv'), join(folder, 'venv-old')];
  rmSync(old, { recursive: true, force: true });
  if (existsSync(venv)) renameSync(venv, old);
  const pip = join(packageRoot(), 'rewards/host/chosen_pip.py');
  const flags = ['--no-deps', '--only-binary=:all:', '--require-hashes', '--progress-bar=off'];
  try {
    await linesOf('python3', ['-E', '-m', 'venv', '--without-pip', venv], 'python3 -m venv', onLine);
    const into = ['-E', pip, '--python', join(venv, 'bin/python'), 'install', ...flags, '-r', list];
    await linesOf('python3', into, 'pip install', onLine);
  } catch (error) {
    rmSync(venv, { recursive: true, force: true });
    if (existsSync(old)) renameSync(old, venv);
    throw error;
  }
  rmSync(old, { recursive: true, force: true });
}

/** What a Python has that an engine needs. */
async function probe(
  python: string,
  { engine, device, onLine }: EngineInstall,
): Promise<EngineEnvironment['versions']> {
  const program = join(packageRoot(), 'engines', engine, 'probe.py');
  const printed = await linesOf(python, ['-I', '-B', program], `${python} with ${engine}`, onLine);
  const { torch, transformers, cpu, gpus } = JSON.parse(printed.at(-1) ?? '{}') as {
    torch: string;
    transformers: string;
    cpu: string;
    gpus: string[];
  };
  if (device === 'cuda' && gpus.length === 0)
    throw new TerminalError('EngineFailed', `${python} finds no GPU`, {
      hint: 'nvidia-smi shows whether the driver does; petrel engine install torch --device cpu needs none',
    });
  return { torch, transformers, device: device === 'cuda' ? (gpus[0] ?? '') : cpu };
}
