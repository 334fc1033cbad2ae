/**
 * What `npm test`, `npm run test:long` and `npm run test:engines` accept: words of paths, a shard, and what to do with
 * the durations.
 */
import { parseArgs } from 'node:util';

/** `quick`: what `npm test` runs by itself. `long`, `engines`: what `npm run test:long` and `test:engines` run. */
export type Choice = 'quick' | 'long' | 'engines' | 'all';

export interface RunnerOptions {
  /** A file runs when its path contains one of them; all files when there is none. */
  readonly filters: readonly string[];
  readonly choice: Choice;
  /** `i/n`: the part of the files for machine i of n. */
  readonly shard?: string;
  /** Whether tests/durations.json gets the durations of this run. */
  readonly record: boolean;
}

const usage = 'usage: npm test -- [words of paths] [--long | --engines | --all] [--shard i/n] [--record]';

/** Reads the words after the command. Throws an error that says what is expected. */
export function runnerOptions(words: readonly string[]): RunnerOptions {
  const { values, positionals } = parsed(words);
  const { long = false, engines = false, all = false, shard, record = false } = values;
  if (shard !== undefined && !isShard(shard)) throw new Error(`--shard expects i/n, as 1/2, not ${shard}\n${usage}`);
  // Who names a file wants it, however long it takes.
  const named = long ? 'long' : engines ? 'engines' : undefined;
  const choice = named ?? (all || positionals.length > 0 ? 'all' : 'quick');
  return { filters: positionals, choice, record, ...(shard !== undefined && { shard }) };
}

function parsed(words: readonly string[]) {
  const flag = { type: 'boolean' } as const;
  const options = { long: flag, engines: flag, all: flag, record: flag, shard: { type: 'string' } } as const;
  try {
    return parseArgs({ args: [...words], options, allowPositionals: true });
  } catch (error) {
    throw new Error(`${(error as Error).message}\n${usage}`, { cause: error });
  }
}

function isShard(text: string): boolean {
  const [, index, count] = /^(\d+)\/(\d+)$/.exec(text) ?? [];
  return index !== undefined && Number(index) >= 1 && Number(index) <= Number(count);
}
