/** The command line of `npm run algorithms`. */
import { parseArgs } from 'node:util';
import { InvalidInputError } from '../../core/errors.ts';

const usage = `usage: npm run algorithms -- [recipe ...] [--json] [--seeds 1,2] [--seconds 20] [--no-document]
  recipe         names of files in examples/10-algorithms without .yaml; none: all, and docs/look-up/algorithms.md is written
  --seeds        each recipe runs once with each of them
  --seconds      a run that takes longer fails; 0: no limit, for a machine that has other work to do
  --no-document  leave docs/look-up/algorithms.md as it is`;

export interface AlgorithmOptions {
  readonly recipes: readonly string[];
  readonly json: boolean;
  readonly seeds: readonly number[];
  /** 0: no limit. */
  readonly secondsLimit: number;
  /** Only a table of all recipes is written. */
  readonly document: boolean;
}

const defaults = { seeds: '1,2', seconds: '20' } as const;

/** Throws InvalidInputError for invalid options. */
export function readOptions(words: readonly string[]): AlgorithmOptions {
  const { values, positionals } = parse(words);
  const seeds = (values.seeds ?? defaults.seeds).split(',').map(Number);
  if (!seeds.every(Number.isSafeInteger)) throw bad(`--seeds ${values.seeds}: expected whole numbers, such as 1,2`);
  const secondsLimit = Number(values.seconds ?? defaults.seconds);
  if (!(secondsLimit >= 0)) throw bad(`--seconds ${values.seconds}: expected a number from 0`);
  return {
    recipes: positionals,
    json: values.json,
    seeds,
    secondsLimit,
    document: positionals.length === 0 && !values['no-document'],
  };
}

function parse(words: readonly string[]) {
  const flag = { type: 'boolean', default: false } as const;
  const text = { type: 'string' } as const;
  const options = { json: flag, 'no-document': flag, seeds: text, seconds: text } as const;
  try {
    return parseArgs({ args: [...words], options, allowPositionals: true });
  } catch (error) {
    throw bad((error as Error).message);
  }
}

const bad = (message: string): InvalidInputError => new InvalidInputError(message, { hint: usage });
