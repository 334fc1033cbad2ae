/**
 * Addition questions in verl's row layout, made from a seed.
 *
 * Pairs of operands (order aside) are laid out in a fixed keyed order; the first tenth of it is for validation, the
 * rest for training. So a validation question is never a training question, whatever the seeds, counts and files.
 */
import { pow } from '../../core/math/pow.ts';
import { InvalidInputError } from '../../core/errors.ts';
import { permute } from '../../core/rl/permutation.ts';
import type { ArithmeticPreset, ArithmeticSplit } from './presets.ts';

export interface ArithmeticOptions {
  readonly rows: number;
  readonly seed: number;
  readonly split: ArithmeticSplit;
  readonly preset: ArithmeticPreset;
  /** Operands are 0 … 10^digits − 1. */
  readonly digits: number;
  /** Adds the column `response`, for kind: sft. */
  readonly sft: boolean;
  /** How many of every 100 responses forget all carries (91 + 67 = 58). Their ground truth stays right. */
  readonly careless: number;
  readonly dataSource: string;
  /** Prompts (their text) that must not come out. */
  readonly exclude: ReadonlySet<string>;
}

export interface ArithmeticRow {
  readonly data_source: string;
  readonly prompt: string | readonly { readonly role: 'user'; readonly content: string }[];
  readonly response?: string;
  readonly ability: 'math';
  readonly reward_model: { readonly style: 'rule'; readonly ground_truth: string };
  readonly extra_info: {
    readonly split: ArithmeticSplit;
    readonly index: number;
    readonly a: number;
    readonly b: number;
  };
}

/** Any constant: it fixes the border between training and validation for ever. */
const SPLIT_KEY = [0x7065_7472, 0x656c_0001];
const VALIDATION_SHARE = 0.1;
const CARELESS_KEY = 0x6361_7265;

/** Throws InvalidInputError when there are not enough questions. Training questions come again when all were used. */
export function arithmeticRows(options: ArithmeticOptions): ArithmeticRow[] {
  const pairs = splitPairs(options.digits, options.split);
  const rows: ArithmeticRow[] = [];
  const wanted = options.split === 'train' ? Number.MAX_SAFE_INTEGER : 2 * pairs.count;
  for (let draw = 0; rows.length < options.rows; draw += 1) {
    if (draw >= wanted || (draw === 2 * pairs.count && rows.length === 0)) throw notEnough(options, rows.length);
    const question = drawQuestion(draw, options.seed, pairs);
    if (question === undefined || options.exclude.has(promptText(question, options.preset))) continue;
    rows.push(toRow(question, rows.length, options));
  }
  return rows;
}

interface Question {
  readonly a: number;
  readonly b: number;
}

interface Pairs {
  /** Positions first … first + count − 1 of the fixed order of all pairs. */
  readonly first: number;
  readonly count: number;
  readonly total: number;
}

function splitPairs(digits: number, split: ArithmeticSplit): Pairs {
  const operands = pow(10, digits);
  const total = (operands * (operands + 1)) / 2;
  const border = Math.floor(total * VALIDATION_SHARE);
  return split === 'validation' ? { first: 0, count: border, total } : { first: border, count: total - border, total };
}

/** Every pair comes in both orders; undefined for the second order of a pair of equals. */
function drawQuestion(draw: number, seed: number, pairs: Pairs): Question | undefined {
  const orders = 2 * pairs.count;
  const ordered = permute(draw % orders, orders, [seed, Math.floor(draw / orders)]);
  const { a, b } = pairAt(permute(pairs.first + (ordered % pairs.count), pairs.total, SPLIT_KEY));
  if (ordered < pairs.count) return { a, b };
  return a === b ? undefined : { a: b, b: a };
}

/** Numbers the pairs with b ≤ a: (0,0), (1,0), (1,1), (2,0) … */
function pairAt(index: number): Question {
  let a = Math.floor((Math.sqrt(8 * index + 1) - 1) / 2);
  while (((a + 1) * (a + 2)) / 2 <= index) a += 1;
  while ((a * (a + 1)) / 2 > index) a -= 1;
  return { a, b: index - (a * (a + 1)) / 2 };
}

/** The text of a prompt, which also identifies the question. */
export function promptText({ a, b }: Question, preset: ArithmeticPreset): string {
  return preset === 'digits' ? `${a}+${b}=` : `What is ${a} + ${b}? Answer with just the number.`;
}

function toRow(question: Question, index: number, options: ArithmeticOptions): ArithmeticRow {
  const { preset, sft, split, dataSource } = options;
  const text = promptText(question, preset);
  const answer = String(question.a + question.b);
  return {
    data_source: dataSource,
    prompt: preset === 'digits' ? text : [{ role: 'user', content: text }],
    ...(sft ? { response: isCareless(index, options) ? String(sumWithoutCarries(question)) : answer } : {}),
    ability: 'math',
    reward_model: { style: 'rule', ground_truth: answer },
    extra_info: { split, index, ...question },
  };
}

/** Exactly `careless` of every hundred rows in a row, scattered by the seed. */
function isCareless(index: number, { careless, seed }: ArithmeticOptions): boolean {
  return permute(index % 100, 100, [seed, Math.floor(index / 100), CARELESS_KEY]) < careless;
}

/** Each column of digits by itself. */
function sumWithoutCarries({ a, b }: Question): number {
  let sum = 0;
  for (let place = 1; place <= Math.max(a, b); place *= 10) {
    sum += place * ((Math.floor(a / place) + Math.floor(b / place)) % 10);
  }
  return sum;
}

function notEnough(options: ArithmeticOptions, found: number): InvalidInputError {
  return new InvalidInputError(
    `there are only ${found} ${options.split} questions with ${options.digits}-digit operands, ${options.rows} were asked for`,
    {
      hint: `--rows ${found}, or --digits ${options.digits + 1}`,
    },
  );
}
