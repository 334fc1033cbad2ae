/** Python environments of engines: `PETREL_HOME/engines/torch-cpu` and its like. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { engineEnvironments } from '../../core/engines.ts';
import type { EngineEnvironmentName } from '../../core/engines.ts';
import { InvalidInputError, TerminalError } from '../../core/errors.ts';
import { packageRoot } from '../../infra/home.ts';
import { readInstalled, writeEnvironment } from '../../infra/engines/environment.ts';
import type { EngineEnvironment } from '../../infra/engines/environment.ts';
import { driverProgram, engineDevices, hasDriver } from '../../infra/engines/gpus.ts';
import type { EngineDevice } from '../../infra/engines/gpus.ts';
import { withLock } from '../../models/hub/lock.ts';
import { linesOf } from './lines-of.ts';

/** The oldest Python 3 for which the list has wheels of every package. */
const leastPython = 11;

/** The command that installs an engine. */
export const installCommand = (engine: string, device: string): string =>
  `petrel engine install ${engine}${device === 'cpu' ? '' : ` --device ${device}`}`;

export interface EngineInstall {
  readonly home: string;
  readonly engine: string;
  readonly device: string;
  /** A Python that has the packages already. Absent: they are installed. */
  readonly python?: string;
  /** Gets each line of what is done. */
  readonly onLine?: (line: string) => void;
  /** Folder of the package that has the lists and programs. Default: this one. */
  readonly root?: string;
  /** Aborting ends what is being installed. */
  readonly signal?: AbortSignal;
}

export interface InstalledEngine {
  readonly environment: EngineEnvironment;
  readonly folder: string;
  /** It was there already. */
  readonly known: boolean;
}

/**
 * Installs what an engine needs, from the list with hashes that petrel has for the device. Throws InvalidInputError for
 * an engine or a device that it does not know, and for a device without a driver or a list. Throws TerminalError
 * `EngineFailed` with the last line of what failed.
 */
export async function installEngine(request: EngineInstall): Promise<InstalledEngine> {
  const { home, engine, python, root } = request;
  const device = requireKnown('device', request.device, engineDevices);
  requireEngine(engine);
  const found = readInstalled(home, engine, device);
  const folder = join(home, 'engines', `${engine}-${device}`);
  const listed = python === undefined ? readList(engine, device, root) : undefined;
  const isSame = listed === undefined ? found?.python === python : found?.list === listed.digest;
  if (found !== undefined && isSame && existsSync(found.python)) return { environment: found, folder, known: true };
  if (listed !== undefined) requireDriver(engine, device);
  mkdirSync(folder, { recursive: true });
  return withLock(join(folder, 'lock'), async () => {
    if (listed === undefined) return named(python ?? '', request, device);
    // A venv knows its own path: it is made where it stays. What is half made has never been named by the environment.
    const venv = join(folder, `venv-${listed.digest.slice(0, 12)}`);
    const own = join(venv, 'bin/python');
    if (readInstalled(home, engine, device)?.python !== own) await makeEnvironment(venv, listed.path, request);
    const installed = await named(own, request, device, listed.digest);
    for (const other of readdirSync(folder))
      if (/^venv/.test(other) && join(folder, other) !== venv) rmSync(join(folder, other), { recursive: true });
    return installed;
  });
}

/** Looks at a Python and writes it down. `list`: digest of the list from which it was made. */
async function named(
  python: string,
  request: EngineInstall,
  device: EngineDevice,
  list?: string,
): Promise<InstalledEngine> {
  const { home, engine } = request;
  const versions = await probe(python, request);
  const environment: EngineEnvironment = {
    python,
    device: device === 'cpu' ? 'cpu' : 'cuda',
    ...(list !== undefined && { list }),
    versions,
  };
  writeEnvironment(home, engine, device, environment);
  return { environment, folder: join(home, 'engines', `${engine}-${device}`), known: false };
}

/** The packages of an engine for a device, with hashes. */
export const listPath = (engine: string, device: EngineDevice, root = packageRoot()): string =>
  join(root, 'engines', engine, `requirements${device === 'cpu' ? '' : `-${device}`}.txt`);

/** Digest of the list that this version of petrel has; undefined where it has none. */
export function listDigest(engine: string, device: EngineDevice, root?: string): string | undefined {
  const path = listPath(engine, device, root);
  return existsSync(path) ? createHash('sha256').update(readFileSync(path)).digest('hex') : undefined;
}

function readList(engine: string, device: EngineDevice, root?: string) {
  const digest = listDigest(engine, device, root);
  if (digest !== undefined) return { path: listPath(engine, device, root), digest };
  throw new InvalidInputError(`petrel has no list of the packages of ${engine} for ${device}`, {
    where: '--device',
    hint: `install ${engine} for ${device} into a Python yourself, then: ${installCommand(engine, device)} --python /path/to/python`,
  });
}

/** Gigabytes are not fetched for a device that is not there. */
function requireDriver(engine: string, device: EngineDevice): void {
  if (device === 'cpu' || hasDriver(device)) return;
  throw new InvalidInputError(`this machine has no driver for ${device}`, {
    where: '--device',
    hint: `${driverProgram[device]} shows whether the driver works; ${installCommand(engine, 'cpu')} needs no GPU`,
  });
}

/** Throws InvalidInputError for an engine that needs no environment, or that petrel does not know. */
export const requireEngine = (word: string, where?: string): EngineEnvironmentName =>
  requireKnown('engine', word, engineEnvironments, where);

function requireKnown<Known extends string>(
  what: string,
  word: string,
  known: readonly Known[],
  where?: string,
): Known {
  const found = known.find((one) => one === word);
  if (found !== undefined) return found;
  const hint = `one of ${known.join(', ')}`;
  throw new InvalidInputError(
    `there is no ${what} ${word} to install`,
    where === undefined ? { hint } : { where, hint },
  );
}

async function makeEnvironment(
  venv: string,
  list: string,
  { onLine, root = packageRoot(), signal }: EngineInstall,
): Promise<void> {
  const options = { onLine, root, signal };
  const version = 'import sys; print("%d.%d" % sys.version_info[:2])';
  const found = (await linesOf('python3', ['-E', '-c', version], 'python3', { root })).at(-1) ?? '';
  const [major = 0, minor = 0] = found.split('.').map(Number);
  if (major !== 3 || minor < leastPython)
    throw new InvalidInputError(`python3 is Python ${found}; its packages need 3.${leastPython} or newer`, {
      hint: 'put a newer python3 first on PATH, or use --python with one that has the packages',
    });
  rmSync(venv, { recursive: true, force: true });
  const pip = join(root, 'rewards/host/chosen_pip.py');
  const flags = ['--no-deps', '--only-binary=:all:', '--require-hashes', '--progress-bar=off'];
  try {
    await linesOf('python3', ['-E', '-m', 'venv', '--without-pip', venv], 'python3 -m venv', options);
    const into = ['-E', pip, '--python', join(venv, 'bin/python'), 'install', ...flags, '-r', list];
    await linesOf('python3', into, 'pip install', options);
  } catch (error) {
    rmSync(venv, { recursive: true, force: true });
    throw error;
  }
}

/** What the probe of an engine prints. */
interface Probed {
  readonly torch: string;
  readonly transformers: string;
  readonly vllm?: string;
  readonly cuda: string | null;
  readonly rocm: string | null;
  readonly cpu: string;
  /** Names of the GPUs that torch finds. */
  readonly gpus: readonly string[];
}

/** What a Python has that an engine needs. */
async function probe(
  python: string,
  { engine, device, onLine, root = packageRoot(), signal }: EngineInstall,
): Promise<EngineEnvironment['versions']> {
  const program = join(root, 'engines', engine, 'probe.py');
  const printed = await linesOf(python, ['-I', '-B', program], `${python} with ${engine}`, { onLine, root, signal });
  const probed = JSON.parse(printed.at(-1) ?? '{}') as Probed;
  if (device !== 'cpu') requireGpus(python, probed, engine, device === 'rocm' ? 'rocm' : 'cuda');
  const { torch, transformers, vllm, cpu, gpus } = probed;
  return {
    torch,
    transformers,
    ...(vllm !== undefined && { vllm }),
    ...(device !== 'cpu' && { gpus: builtFor(probed) }),
    device: device === 'cpu' ? cpu : (gpus[0] ?? ''),
  };
}

const builtFor = ({ cuda, rocm }: Probed): string =>
  rocm === null ? (cuda === null ? 'processors' : `CUDA ${cuda}`) : `ROCm ${rocm}`;

function requireGpus(python: string, probed: Probed, engine: string, device: 'cuda' | 'rocm'): void {
  const other = device === 'cuda' ? 'rocm' : 'cuda';
  if (probed[device] === null)
    throw new TerminalError(
      'EngineFailed',
      `the torch of ${python} is built for ${builtFor(probed)}, not for ${device}`,
      {
        hint:
          probed[other] === null
            ? `name a Python whose torch is built for ${device}`
            : `${installCommand(engine, other)} --python ${python}`,
      },
    );
  if (probed.gpus.length === 0)
    throw new TerminalError('EngineFailed', `${python} finds no GPU`, {
      hint: `${driverProgram[device]} shows whether the driver does; ${installCommand(engine, 'cpu')} needs none`,
    });
}
