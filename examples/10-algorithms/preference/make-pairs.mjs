/**
 * Makes pairs.jsonl and held-out.jsonl from the sums of example 01: the right answer, and a plausible wrong one. Half
 * of the wrong ones forget the carries, where there are any; the others have one digit wrong, one too many or one too
 * few.
 *
 *   node examples/10-algorithms/preference/make-pairs.mjs [<folder>]
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const here = import.meta.dirname;
const sums = join(here, '../../01-arithmetic-grpo');

/** Numbers in [0, 1) from a seed (mulberry32). */
function randomOf(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The sum digit by digit, without carries. */
function withoutCarries(a, b) {
  const digits = (n) => String(n).padStart(2, '0').split('').map(Number);
  const [x, y] = [digits(a), digits(b)];
  return String(Number(x.map((digit, i) => (digit + y[i]) % 10).join('')));
}

function wrongAnswer(a, b, random) {
  const right = String(a + b);
  const careless = withoutCarries(a, b);
  if (careless !== right && random() < 0.5) return careless;
  const at = Math.floor(random() * right.length);
  const digit = String((Number(right[at]) + 1 + Math.floor(random() * 9)) % 10);
  const kind = random();
  if (kind < 0.15 && right.length > 1) return right.slice(0, at) + right.slice(at + 1);
  if (kind < 0.3) return right.slice(0, at) + digit + right.slice(at);
  return right.slice(0, at) + digit + right.slice(at + 1);
}

function pairsOf(file, seed) {
  const random = randomOf(seed);
  const rows = readFileSync(join(sums, file), 'utf8').trim().split('\n').map(JSON.parse);
  return rows
    .map(({ prompt, extra_info: { a, b } }) => {
      const rejected = wrongAnswer(a, b, random);
      return `${JSON.stringify({ data_source: 'sums', prompt, chosen: String(a + b), rejected })}\n`;
    })
    .join('');
}

const folder = process.argv[2] ?? here;
writeFileSync(join(folder, 'pairs.jsonl'), pairsOf('train.jsonl', 1));
writeFileSync(join(folder, 'held-out.jsonl'), pairsOf('validation.jsonl', 2));
