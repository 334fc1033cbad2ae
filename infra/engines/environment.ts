/** The Python environments of engines in PETREL_HOME/engines: which Python, and what it has. */
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { namedEngines } from '../../core/engines.ts';
import { readHomeJson, writeHomeJson } from '../home-json.ts';
import type { EngineDevice } from './gpus.ts';

const environment = z.object({
  /** The Python that has torch and transformers. */
  python: z.string(),
  /** The word of torch, which calls the GPUs of AMD cuda, too. */
  device: z.enum(['cpu', 'cuda']),
  /** Digest of the list from which petrel installed it. Absent: somebody else made it. */
  list: z.string().optional(),
  versions: z.object({
    torch: z.string(),
    transformers: z.string(),
    vllm: z.string().optional(),
    /** What torch is built for besides processors: `CUDA 13.2`, `ROCm 7.2`. */
    gpus: z.string().optional(),
    /** A GPU model, or the vector instructions of the processor as torch names them. */
    device: z.string(),
  }),
});
export type EngineEnvironment = z.infer<typeof environment>;

const fileOf = (home: string, name: string): string => join(home, 'engines', name, 'environment.json');

/** What `petrel engine install` wrote of an engine for a device. Undefined: nothing that can be read. */
export const readInstalled = (home: string, engine: string, device: EngineDevice): EngineEnvironment | undefined =>
  environment.safeParse(readHomeJson(fileOf(home, `${engine}-${device}`))).data;

/** The environment for a device as torch names it, such as `torch-cuda`, which may have been installed for ROCm. */
export function readEnvironment(home: string, name: string): EngineEnvironment | undefined {
  const [engine = '', device] = name.split('-');
  if (device !== 'cuda') return readInstalled(home, engine, 'cpu');
  return readInstalled(home, engine, 'cuda') ?? readInstalled(home, engine, 'rocm');
}

/** The environment in which an engine runs here: the one for GPUs, if there is one. Undefined: none is installed. */
export function chosenEnvironment(home: string, engine: string): EngineEnvironment | undefined {
  const name = namedEngines[engine]?.environment;
  return name === undefined
    ? undefined
    : (readEnvironment(home, `${name}-cuda`) ?? readEnvironment(home, `${name}-cpu`));
}

export function writeEnvironment(home: string, engine: string, device: EngineDevice, value: EngineEnvironment): void {
  const file = fileOf(home, `${engine}-${device}`);
  mkdirSync(dirname(file), { recursive: true });
  writeHomeJson(file, value);
}
