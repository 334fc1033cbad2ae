/** Tries an installed engine: does it repeat its bits, and how fast is it? */
import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { InvalidInputError } from '../../core/errors.ts';
import { packageRoot } from '../../infra/home.ts';
import { readInstalled } from '../../infra/engines/environment.ts';
import type { EngineEnvironment } from '../../infra/engines/environment.ts';
import { engineDevices } from '../../infra/engines/gpus.ts';
import { installCommand } from './install.ts';
import { linesOf } from './lines-of.ts';

const tried = z.object({
  compute: z.enum(['fp32', 'bf16']),
  /** A fixed training step gave the same bits twice, or a sampler the same tokens. */
  repeats: z.boolean(),
  /** All weights were numbers after it. */
  finite: z.boolean(),
  /** Tokens per second, of a model of 5 million parameters. Absent: the engine only samples. */
  trainedPerSecond: z.number().optional(),
  sampledPerSecond: z.number(),
});

const devices = z.array(
  z.object({
    /** A GPU model, or the vector instructions of the processor as torch names them. */
    name: z.string(),
    /** Bytes: the GPU's, or the machine's. */
    memory: z.number(),
  }),
);

export interface EngineTrial {
  /** `torch-cpu`. */
  readonly name: string;
  readonly environment: EngineEnvironment;
  /** The devices that the engine finds. The first of them was tried. */
  readonly devices: z.infer<typeof devices>;
  readonly computes: readonly z.infer<typeof tried>[];
  /** It may be trusted: everything was finite, and repeated. */
  readonly trusted: boolean;
}

/**
 * Trains and samples a small model, twice from the same state, in each compute type. Throws InvalidInputError when the
 * engine is not installed, TerminalError `EngineFailed` when it does not run.
 */
export async function tryEngine(home: string, engine: string, device: string): Promise<EngineTrial> {
  const name = `${engine}-${device}`;
  const known = engineDevices.find((one) => one === device);
  const environment = known && readInstalled(home, engine, known);
  if (environment === undefined)
    throw new InvalidInputError(`${engine} is not installed for ${device}`, {
      hint: installCommand(engine, device),
    });
  const folder = mkdtempSync(join(tmpdir(), 'petrel-engine-check-'));
  try {
    const program = join(packageRoot(), 'engines', engine, 'check.py');
    const args = ['-I', '-B', program, environment.device, String(cpus().length), folder];
    const printed = await linesOf(environment.python, args, `the check of ${engine}`);
    const objects = printed.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as object);
    const found = z.object({ devices }).parse(objects[0]);
    const computes = objects.slice(1).map((object) => tried.parse(object));
    const trusted = computes.length === 2 && computes.every(({ repeats, finite }) => repeats && finite);
    return { name, environment, devices: found.devices, computes, trusted };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
