/** `print-random-work.ts <first seed> <count>`: one line `<compute> <seed> <digest>` for each seed and compute type. */
import { writeSync } from 'node:fs';
import type { EngineOptions } from '../../core/ports/policy.ts';
import { engineInfo } from '../index.ts';
import { randomWork } from './random-work.ts';

const [first = 1, count = 1] = process.argv.slice(2).map(Number);
const computes: readonly EngineOptions['compute'][] = engineInfo().bf16 ? ['fp32', 'bf16'] : ['fp32'];
for (let seed = first; seed < first + count; seed++) {
  for (const compute of computes) {
    // The line begins before the work: when the process dies, its last line names the seed.
    writeSync(1, `${compute} ${seed} `);
    writeSync(1, `${randomWork(seed, { compute, deterministic: compute === 'fp32', threads: 1 + (seed % 2) })}\n`);
  }
}
