/**
 * `npm run check:hf -- [<run or folder>]`: checks that transformers can read what petrel exports, and that it computes
 * the same log-probs. For a run, the newest checkpoint is exported first. Without an argument the base of the
 * arithmetic example is checked. Exit code 1 when a difference is above 2e-4.
 */
import { execFile, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { json } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { errorToJson, InvalidInputError } from '../core/errors.ts';
import { packageRoot } from '../infra/home.ts';
import { openTokenizer } from '../models/tokenizer.ts';
import { engineInfo } from '../native/index.ts';
import { largestDifference, logProbsOf, openFolder } from './score-texts.ts';

const tolerance = 2e-4;
const texts = [
  '12+34=46',
  '7+8=15 99+1=100 45+38=83',
  'What is 37 + 45? Answer with just the number. The answer is 82, since 7 + 5 makes 12 and one is carried.',
  'The first scene has twice the number of lines as his solo song, so it has 2 * 54 = 108 lines.',
];

interface Reference {
  readonly about: string;
  readonly logProbs: readonly (readonly number[])[];
}

async function main([
  word = join(packageRoot(), 'examples/01-arithmetic-grpo/base'),
  ...more
]: readonly string[]): Promise<number> {
  if (more.length > 0 || word.startsWith('-'))
    throw new InvalidInputError('usage: npm run check:hf -- [<run or folder>]');
  const python = await checkedPython(process.env['PETREL_PYTHON']);
  const { folder, remove } = await folderOf(word);
  try {
    const tokens = await tokensOf(folder);
    const reference = await askTransformers(python, folder, tokens);
    console.log(`${word}: ${reference.about}`);
    return await compare(folder, tokens, reference);
  } finally {
    remove();
  }
}

/** Throws InvalidInputError that says what to set when Python or one of its packages is missing. */
async function checkedPython(python: string | undefined): Promise<string> {
  const hint =
    'Set PETREL_PYTHON to a Python that has them, for instance: python3 -m venv env && env/bin/pip install torch transformers';
  if (!python)
    throw new InvalidInputError('check:hf needs a Python with torch and transformers, and PETREL_PYTHON is not set', {
      hint,
    });
  await promisify(execFile)(python, ['-c', 'import torch, transformers']).catch((cause: unknown) => {
    const missing = /No module named '?([\w.]+)/.exec(errorToJson(cause).message)?.[1];
    throw new InvalidInputError(
      missing === undefined ? `PETREL_PYTHON=${python} does not run` : `PETREL_PYTHON=${python} has no ${missing}`,
      { hint, cause },
    );
  });
  return python;
}

/** Returns a folder as it is, and exports a run's newest checkpoint by `petrel ckpt export`. */
async function folderOf(word: string): Promise<{ readonly folder: string; remove(): void }> {
  if (existsSync(join(word, 'config.json'))) return { folder: resolve(word), remove: () => {} };
  if (existsSync(word)) throw new InvalidInputError(`${word} has no config.json: it is not a Hugging Face folder`);
  const place = mkdtempSync(join(tmpdir(), 'petrel-check-hf-'));
  const remove = () => rmSync(place, { recursive: true, force: true });
  const folder = join(place, 'export');
  try {
    await promisify(execFile)(process.execPath, [
      join(packageRoot(), 'cli/bin.mjs'),
      'ckpt',
      'export',
      word,
      '--out',
      folder,
    ]);
  } catch (cause) {
    remove();
    throw new InvalidInputError(`${word} is neither a folder nor a run with a checkpoint`, {
      hint: errorToJson(cause).message,
      cause,
    });
  }
  return { folder, remove };
}

/** Token ids of the texts. Texts that the tokenizer cannot encode give no ids. */
async function tokensOf(folder: string): Promise<number[][]> {
  const tokenizer = await openTokenizer(folder);
  const ids = await tokenizer.encodeBatch(texts);
  const usable = ids.map((text) => Array.from(text)).filter((text) => text.length > 1);
  if (usable.length === 0) throw new InvalidInputError(`${folder}: its tokenizer makes no tokens of the test texts`);
  return usable;
}

async function askTransformers(python: string, folder: string, tokens: readonly number[][]): Promise<Reference> {
  const script = join(packageRoot(), 'tests/check_hf.py');
  const child = spawn(python, [script, folder], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, HF_HUB_OFFLINE: '1' },
  });
  child.stdin.end(JSON.stringify({ texts: tokens }));
  try {
    return (await json(child.stdout)) as Reference;
  } catch (cause) {
    throw new InvalidInputError(`transformers could not load ${folder}; its output is above`, { cause });
  }
}

async function compare(folder: string, tokens: readonly number[][], reference: Reference): Promise<number> {
  const trainer = await openFolder(
    folder,
    { compute: 'fp32', deterministic: false, threads: engineInfo().threads },
    false,
  );
  const differences = tokens.map((ids, i) => largestDifference(logProbsOf(trainer, ids), reference.logProbs[i] ?? []));
  trainer.close();
  const largest = Math.max(...differences);
  const agrees = largest <= tolerance; // a NaN does not agree
  const count = tokens.reduce((sum, ids) => sum + ids.length - 1, 0);
  console.log(
    `largest difference of ${count} log-probs: ${largest.toExponential(2)} (limit ${tolerance}): ${agrees ? 'ok' : 'FAILED'}`,
  );
  return agrees ? 0 : 1;
}

main(process.argv.slice(2)).then(
  (code) => (process.exitCode = code),
  (error: unknown) => {
    const { message, hint } = errorToJson(error);
    console.error(`check:hf: ${message}${hint === undefined ? '' : `\n  ${hint}`}`);
    process.exitCode = error instanceof InvalidInputError ? 2 : 1;
  },
);
