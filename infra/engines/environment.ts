/** The Python environments of engines in PETREL_HOME/engines: which Python, and what it has. */
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { readHomeJson, writeHomeJson } from '../home-json.ts';

const environment = z.object({
  /** The Python that has torch and transformers. */
  python: z.string(),
  device: z.enum(['cpu', 'cuda']),
  /** Digest of the list from which petrel installed it. Absent: somebody else made it. */
  list: z.string().optional(),
  versions: z.object({
    torch: z.string(),
    transformers: z.string(),
    /** A GPU model, or the vector instructions of the processor as torch names them. */
    device: z.string(),
  }),
});
export type EngineEnvironment = z.infer<typeof environment>;

const fileOf = (home: string, name: string): string => join(home, 'engines', name, 'environment.json');

/** What `petrel engine install` wrote of an environment, such as `torch-cpu`. Undefined: nothing that can be read. */
export function readEnvironment(home: string, name: string): EngineEnvironment | undefined {
  return environment.safeParse(readHomeJson(fileOf(home, name))).data;
}

export function writeEnvironment(home: string, name: string, value: EngineEnvironment): void {
  const file = fileOf(home, name);
  mkdirSync(dirname(file), { recursive: true });
  writeHomeJson(file, value);
}
