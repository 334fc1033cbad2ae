/**
 * `failing-main.ts <case>`: makes the addon fail on purpose and prints the JavaScript errors, then the number of
 * log-probs of a forward pass, which shows that the process still computes.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { native, type NativeFunctions, type NativeHandle } from '../binding.ts';
import { batchOf, decoder, trainerOf } from './decoders.ts';

interface Generators {
  generatorOpen(trainer: NativeHandle, maxSeqs: number, maxModelLen: number, kvPages: number): unknown;
}
const addon = native<NativeFunctions & Generators>;

const options = { compute: 'fp32', deterministic: true, threads: 2, trainable: false };

const cases: Readonly<Record<string, () => void>> = {
  'a setting that is unknown': () => attempt(() => addon().engineInfo()),
  'kernels that refuse, on every thread': () => {
    const handle = addon().trainerCreate(decoder({ hidden: 64, ffn: 640 }), { ...options, compute: 'bf16' });
    for (let i = 0; i < 300; i++) attempt(() => addon().trainerRefresh(handle));
  },
  'no memory for threads': () => {
    const handle = addon().trainerCreate(decoder(), { ...options, threads: 1000 });
    limitMemory(200);
    attempt(() => addon().trainerRefresh(handle));
  },
  'no memory for a model': () => {
    limitMemory(400);
    attempt(() => addon().trainerCreate(decoder({ vocab: 1 << 26, hidden: 1 << 12 }), options));
  },
  'no memory for a table': () => {
    const handle = addon().trainerCreate(decoder(), options);
    limitMemory(400);
    attempt(() => addon().generatorOpen(handle, 1, 1 << 29, 1));
  },
};

function attempt(work: () => unknown): void {
  try {
    console.log(work() ?? 'no error');
  } catch (error) {
    console.log(`error: ${(error as Error).message}`);
  }
}

/** Limits this process to so many more MiB of mappings from now on. */
function limitMemory(mebibytes: number): void {
  const pages = Number(readFileSync('/proc/self/statm', 'utf8').split(' ')[0]);
  const bytes = pages * 4096 + mebibytes * 2 ** 20;
  execFileSync('prlimit', ['--pid', String(process.pid), `--as=${bytes}:unlimited`]);
}

/** Ends the limit, so that what follows tests only what the failure left behind. */
function liftLimit(): void {
  execFileSync('prlimit', ['--pid', String(process.pid), '--as=unlimited:unlimited']);
}

const wanted = cases[process.argv[2] ?? ''];
if (wanted === undefined) throw new Error(`a case is one of: ${Object.keys(cases).join(', ')}`);
wanted();
if (process.argv[2]?.startsWith('no memory')) liftLimit();
attempt(() => {
  const config = decoder();
  const {
    outputs: { logProbs: logProbs_P },
  } = trainerOf(config, 3, { threads: 2 }).forward(batchOf(config, [9, 20], 3), {
    temperature: 1,
    wants: ['logProbs'],
    keep: false,
  });
  return `computed ${logProbs_P.length}`;
});
