/** The GPUs of this machine, as their driver's program tells of them. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { z } from 'zod';
import { errorToJson, InvalidInputError } from '../../core/errors.ts';
import { gpu } from '../../core/machine-needs.ts';
import type { Gpu } from '../../core/machine-needs.ts';
import { driverProgram, gpuOfMachine } from './gpus.ts';

/** GPUs that a worker says it has, in place of those that are asked for: tests play machines with devices. */
const playedVariable = 'PETREL_PLAYED_GPUS';
/** A driver that hangs must not keep a worker from its other jobs. */
const answerMs = 20_000;

/** Empty, with a line on standard error, where the driver's program does not answer. */
export async function gpusHere(env: NodeJS.ProcessEnv = process.env): Promise<readonly Gpu[]> {
  const played = env[playedVariable];
  if (played !== undefined) return playedGpus(played);
  const kind = gpuOfMachine();
  if (kind === undefined) return [];
  try {
    return kind === 'cuda' ? ofNvidia(await asked(kind, nvidiaQuestion)) : ofAmd(await asked(kind, amdQuestion));
  } catch (error) {
    console.error(`${driverProgram[kind]} does not tell of this machine's GPUs: ${errorToJson(error).message}`);
    return [];
  }
}

const nvidiaQuestion = ['--query-gpu=name,memory.total', '--format=csv,noheader,nounits'];
const amdQuestion = ['--showproductname', '--showmeminfo', 'vram', '--json'];

async function asked(kind: keyof typeof driverProgram, words: readonly string[]): Promise<string> {
  return (await promisify(execFile)(driverProgram[kind], words, { timeout: answerMs })).stdout;
}

/** Lines such as `NVIDIA H100 80GB HBM3, 81559`, in MiB. */
export const ofNvidia = (text: string): Gpu[] =>
  text
    .split('\n')
    .map((line) => /^(.+), *(\d+)$/.exec(line.trim()))
    .flatMap((found) => (found === null ? [] : [{ name: found[1] ?? '', gib: Number(found[2]) / 1024 }]));

const cards = z.record(z.string(), z.record(z.string(), z.string()));

/** An object by card: `{"card0": {"Card Series": "…", "VRAM Total Memory (B)": "…"}}`. */
export const ofAmd = (text: string): Gpu[] =>
  Object.entries(cards.parse(JSON.parse(text))).flatMap(([name, facts]) => {
    const bytes = Number(facts['VRAM Total Memory (B)'] ?? Number.NaN);
    if (!/^card\d+$/.test(name) || Number.isNaN(bytes)) return [];
    return [
      { name: facts['Card Series'] ?? facts['Card series'] ?? facts['Card Model'] ?? 'AMD', gib: bytes / 2 ** 30 },
    ];
  });

function playedGpus(text: string): readonly Gpu[] {
  const parsed = z.array(gpu).safeParse(json(text));
  if (parsed.success) return parsed.data;
  throw new InvalidInputError(`${playedVariable}: expected [{"name": "H100", "gib": 80}], got ${text}`);
}

function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
