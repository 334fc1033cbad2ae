/** A kept store (tests/kept-stores) as the default store of a user's home. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import type { PetrelUser } from './petrel.ts';
import { until } from './second-worker.ts';

const folder = join(dirname(fileURLToPath(import.meta.url)), '../kept-stores');

export class KeptStore {
  readonly #user: PetrelUser;
  /** Folder of the store. */
  readonly folder: string;

  /** `stack` becomes the name of the home's stack; `kept-a` is the stack that drives most of the runs. */
  constructor(user: PetrelUser, version: string, stack = 'kept-a') {
    this.#user = user;
    execFileSync('tar', ['-C', user.home, '-xzf', join(folder, `${version}.tar.gz`)]);
    writeFileSync(join(user.home, 'stack-name'), `${stack}\n`);
    this.folder = join(user.home, 'store');
  }

  /** The folder of the run with this name. */
  run(name: string): string {
    const runs = join(this.folder, 'runs');
    const runId = readdirSync(runs).find((id) => recordOf(join(runs, id, 'run.json'))['name'] === name);
    if (runId === undefined) throw new Error(`there is no run ${name} in ${runs}`);
    return join(runs, runId);
  }

  /** State digest by iteration, from the records. When several terms have an iteration, the newest term is used. */
  states(name: string): Record<number, unknown> {
    const terms = join(this.run(name), 'terms');
    const states: Record<number, unknown> = {};
    for (const term of numbers(terms)) {
      for (const iteration of numbers(join(terms, `${term}`))) {
        const update = updateOf(join(terms, `${term}/${iteration}/update.json`));
        if (update !== undefined) states[iteration] = update['stateDigest'];
      }
    }
    return states;
  }

  /** The hash of the blocks in the run's digests, as each of its terms names it. */
  blockHashes(name: string): unknown[] {
    const terms = join(this.run(name), 'terms');
    return numbers(terms).map((term) => {
      const { profile, components } = recordOf(join(terms, `${term}/term.json`)) as {
        readonly profile?: { readonly blockHash?: unknown };
        readonly components?: { readonly actor: { readonly profile: { readonly blockHash?: unknown } } };
      };
      return (components?.actor.profile ?? profile)?.blockHash;
    });
  }

  /** The output of `petrel status` about a run. */
  async status(name: string): Promise<Record<string, unknown>> {
    const answer = await this.#user.petrel('status', name, '--json');
    expect(answer.code, answer.err).toBe(0);
    return answer.json();
  }

  /** Resolves when the run has this state. */
  async reaches(name: string, state: string): Promise<void> {
    const reached = async () => {
      const status = await this.status(name);
      if (status['state'] === 'failed' && state !== 'failed')
        throw new Error(`${name} is not ${state}: ${JSON.stringify(status, null, 2)}`);
      return status['state'] === state || undefined;
    };
    await until(`${name} to be ${state}`, reached);
  }

  /** Reads every object of the run, and fails with the faults of the run. */
  async verify(name: string): Promise<void> {
    const verdict = await this.#user.petrel('ledger', 'verify', name, '--deep', '--json');
    expect({ code: verdict.code, faults: verdict.json<{ faults: unknown[] }>().faults }).toEqual({
      code: 0,
      faults: [],
    });
  }
}

function recordOf(file: string): Record<string, unknown> {
  return JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
}

/** Undefined when the iteration was not applied. */
function updateOf(file: string): Record<string, unknown> | undefined {
  try {
    const record = recordOf(file);
    return record['outcome'] === 'seal' ? undefined : record;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Names in a folder that are numbers, ascending. */
function numbers(path: string): number[] {
  return readdirSync(path)
    .map(Number)
    .filter(Number.isInteger)
    .sort((a, b) => a - b);
}
