/**
 * `npm run check:hf -- [<run or folder>]`: checks that transformers can read what petrel exports, and that it computes
 * the same log-probs. For a run, the newest checkpoint is exported first. Without an argument the base of the
 * arithmetic example is checked. `--families`: random models of odd shapes, of every family and in both forms of
 * config.json. Exit code 1 when a difference from float64 is above 2e-4 in fp32, or in bf16 on average more than 1.5
 * times as large as torch's in bf16.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { errorToJson, InvalidInputError } from '../core/errors.ts';
import type { ComputeType } from '../core/parameters.ts';
import { packageRoot } from '../infra/home.ts';
import { openTokenizer } from '../models/tokenizer.ts';
import { engineInfo } from '../native/index.ts';
import { randomOf } from '../native/testing/decoders.ts';
import { largestDifference, logProbsOf, openFolder } from './score-texts.ts';

const tolerance = 2e-4;
const bf16Factor = 1.5;
const texts = [
  '12+34=46',
  '7+8=15 99+1=100 45+38=83',
  'What is 37 + 45? Answer with just the number. The answer is 82, since 7 + 5 makes 12 and one is carried.',
  'The first scene has twice the number of lines as his solo song, so it has 2 * 54 = 108 lines.',
];

const script = join(packageRoot(), 'tests/check_hf.py');
const offline = { ...process.env, HF_HUB_OFFLINE: '1' };

interface Reference {
  readonly about: string;
  readonly folder: string;
  readonly logProbs: readonly (readonly number[])[];
  /** torch's, in bf16. */
  readonly bf16: readonly (readonly number[])[];
}

async function main([
  word = join(packageRoot(), 'examples/01-arithmetic-grpo/base'),
  ...more
]: readonly string[]): Promise<number> {
  if (more.length > 0 || (word.startsWith('-') && word !== '--families'))
    throw new InvalidInputError('usage: npm run check:hf -- [<run or folder> | --families]');
  const python = await checkedPython(process.env['PETREL_PYTHON']);
  if (word === '--families') return checkFamilies(python);
  const { folder, remove } = await folderOf(word);
  try {
    const tokens = await tokensOf(folder);
    const [reference] = await askTransformers(python, [folder], tokens);
    if (reference === undefined) throw new InvalidInputError(`${folder}: transformers gave no answer`);
    console.log(`${word}: ${reference.about}`);
    return await compare(folder, tokens, reference);
  } finally {
    remove();
  }
}

async function checkFamilies(python: string): Promise<number> {
  const place = mkdtempSync(join(tmpdir(), 'petrel-check-hf-'));
  try {
    const tokens = randomTexts(300);
    const codes: number[] = [];
    for (const reference of await askTransformers(python, ['--make', place], tokens)) {
      console.log(`${basename(reference.folder)}: ${reference.about}`);
      codes.push(await compare(reference.folder, tokens, reference));
    }
    return Math.max(...codes);
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

/** Lengths around the window of the models, and one of several pages. */
function randomTexts(vocab: number): number[][] {
  const random = randomOf(5);
  return [2, 6, 7, 8, 50].map((length) => Array.from({ length }, () => Math.floor(random() * vocab)));
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

async function askTransformers(
  python: string,
  words: readonly string[],
  tokens: readonly number[][],
): Promise<Reference[]> {
  const child = spawn(python, [script, ...words], { stdio: ['pipe', 'pipe', 'inherit'], env: offline });
  child.stdin.end(JSON.stringify({ texts: tokens }));
  const [printed, [code]] = await Promise.all([text(child.stdout), once(child, 'close')]);
  if (code !== 0) throw new InvalidInputError(`transformers failed (${words.join(' ')}); its output is above`);
  return printed
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Reference);
}

async function compare(folder: string, tokens: readonly number[][], reference: Reference): Promise<number> {
  const { threads, bf16 } = engineInfo();
  const open = (compute: ComputeType) => openFolder(folder, { compute, deterministic: false, threads }, false);
  const scored = async (compute: ComputeType) => {
    const trainer = await open(compute);
    const logProbs = tokens.map((ids) => logProbsOf(trainer, ids));
    trainer.close();
    return logProbs;
  };
  const exact = await scored('fp32');
  const largest = Math.max(...exact.map((row, i) => largestDifference(row, reference.logProbs[i] ?? [])));
  const agrees = largest <= tolerance; // a NaN does not agree
  const count = tokens.reduce((sum, ids) => sum + ids.length - 1, 0);
  console.log(
    `largest difference of ${count} log-probs: ${largest.toExponential(2)} (limit ${tolerance}): ${agrees ? 'ok' : 'FAILED'}`,
  );
  if (!bf16) return agrees ? 0 : 1;
  const [ours, torch] = [await scored('bf16'), reference.bf16].map((rows) => rootMeanSquare(rows, reference.logProbs));
  const factor = (ours ?? Number.NaN) / (torch ?? Number.NaN);
  const isNear = factor <= bf16Factor;
  console.log(
    `bf16: root mean square ${ours?.toExponential(2)}, torch ${torch?.toExponential(2)}: ${factor.toFixed(2)} times (limit ${bf16Factor}): ${isNear ? 'ok' : 'FAILED'}`,
  );
  return agrees && isNear ? 0 : 1;
}

/** Root mean square of the differences between two lists of rows. */
function rootMeanSquare(got: readonly ArrayLike<number>[], want: readonly ArrayLike<number>[]): number {
  const squares = want.flatMap((row, i) => Array.from(row, (value, j) => ((got[i]?.[j] ?? Number.NaN) - value) ** 2));
  return Math.sqrt(squares.reduce((sum, square) => sum + square, 0) / squares.length);
}

main(process.argv.slice(2)).then(
  (code) => (process.exitCode = code),
  (error: unknown) => {
    const { message, hint } = errorToJson(error);
    console.error(`check:hf: ${message}${hint === undefined ? '' : `\n  ${hint}`}`);
    process.exitCode = error instanceof InvalidInputError ? 2 : 1;
  },
);
