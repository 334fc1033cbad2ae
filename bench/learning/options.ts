/** The command line of `npm run learning`. */
import { parseArgs } from 'node:util';
import { InvalidInputError } from '../../core/errors.ts';

const parts = ['exact', 'curves'] as const;
export type Part = (typeof parts)[number];

const usage = `usage: npm run learning -- [exact] [curves] [--seeds 8] [--threads 1] [--write] [--draw]
  exact      ten recorded batches through TRL's losses and PPO's in plain torch
  curves     learning curves of petrel and TRL; without a word: both
  --seeds    runs on each side
  --threads  of the other side; petrel's stack takes what the machine has
  --write    put results into docs/look-up/learning-as-trl.md, docs/look-up/learning-as-trl.svg and bench/learning/curves.json
  --draw     run nothing: make the table and the picture of the curves from bench/learning/curves.json
PETREL_PYTHON is a Python that has torch, transformers, trl and datasets.`;

export interface LearningOptions {
  readonly parts: readonly Part[];
  readonly seeds: readonly number[];
  readonly threads: number;
  readonly write: boolean;
  readonly draw: boolean;
}

/** Throws InvalidInputError for invalid options. */
export function readOptions(words: readonly string[]): LearningOptions {
  const { values, positionals } = parse(words);
  const wanted = positionals.map(
    (word) => parts.find((part) => part === word) ?? bad(`${word}: expected exact or curves`),
  );
  const seeds = whole('seeds', values.seeds ?? '8');
  if (seeds < 2) bad('--seeds: an interval needs two or more');
  return {
    parts: wanted.length === 0 ? parts : wanted,
    seeds: Array.from({ length: seeds }, (_, i) => i + 1),
    threads: whole('threads', values.threads ?? '1'),
    write: values.write,
    draw: values.draw,
  };
}

function whole(name: string, text: string): number {
  const value = Number(text);
  return Number.isInteger(value) && value > 0 ? value : bad(`--${name} ${text}: expected a whole number from 1`);
}

function parse(words: readonly string[]) {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean', default: false } as const;
  const options = { seeds: text, threads: text, write: flag, draw: flag } as const;
  try {
    return parseArgs({ args: [...words], options, allowPositionals: true });
  } catch (error) {
    return bad((error as Error).message);
  }
}

function bad(message: string): never {
  throw new InvalidInputError(message, { hint: usage });
}
