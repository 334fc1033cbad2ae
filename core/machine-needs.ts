/**
 * What a run needs of the machines that do its jobs of a role, beside an engine: `fleet.needs` of a recipe. Jobs with
 * needs have a queue of their own, which only machines read that have all of it.
 */
import { z } from 'zod';

/** Letters and digits of a GPU's name that its full name has in this order: `H100` is in `NVIDIA H100 80GB HBM3`. */
const gpuModel = z.string().regex(/^[A-Za-z0-9]+$/, 'expected letters and digits of its name, such as H100');
const namesOfPools = z.array(z.string().regex(/^[a-z0-9][a-z0-9-]*$/)).min(1);

export const gpuNeed = z.strictObject({
  /** GPUs of one machine. */
  count: z.int().positive().max(64).default(1),
  /** Memory of each, at least. */
  memory_gib: z.number().positive().max(4096).exactOptional(),
  model: gpuModel.exactOptional(),
});

export const machineNeeds = z.strictObject({
  /** Names of pools, of which the machine is in one. */
  pools: namesOfPools.exactOptional(),
  gpu: gpuNeed.exactOptional(),
  /** Its round trip to the control machine, at most. */
  within_ms: z.number().positive().max(10_000).exactOptional(),
});
export interface MachineNeeds {
  readonly pools?: readonly string[];
  readonly gpu?: Readonly<z.infer<typeof gpuNeed>>;
  readonly within_ms?: number;
}

/** A GPU, as its driver tells of it. */
export const gpu = z.object({ name: z.string(), gib: z.number().nonnegative() });
export type Gpu = Readonly<z.infer<typeof gpu>>;

/** What a machine offers. */
export interface MachineFacts {
  readonly pool: string;
  readonly gpus: readonly Gpu[];
  /** Round trip to the control machine, ms. Absent: not known, and believed to be short. */
  readonly roundTripMs?: number | undefined;
}

/**
 * Is `gib` of memory as much as `wanted`? Drivers keep some of a card for themselves: one that is sold with 80 GiB has
 * 79.6.
 */
const holds = (gib: number, wanted: number): boolean => gib >= 0.95 * wanted;

const letters = (name: string): string => name.replaceAll(/[^A-Za-z0-9]/g, '').toLowerCase();

export function meets(needs: MachineNeeds, { pool, gpus, roundTripMs = 0 }: MachineFacts): boolean {
  const { pools, gpu: wanted, within_ms: within = Number.POSITIVE_INFINITY } = needs;
  if (roundTripMs > within || (pools !== undefined && !pools.includes(pool))) return false;
  if (wanted === undefined) return true;
  const { count, memory_gib: gib = 0, model = '' } = wanted;
  const able = gpus.filter((one) => holds(one.gib, gib) && letters(one.name).includes(model.toLowerCase()));
  return able.length >= count;
}

/** A word of NATS subjects, the same for the same needs; empty without any. */
export function needsWord({ pools, gpu: wanted, within_ms: within }: MachineNeeds): string {
  const words = [
    ...(pools === undefined ? [] : ['in', ...new Set([...pools].sort())]),
    ...(wanted === undefined ? [] : ['gpu', `${wanted.count}x${wanted.memory_gib ?? 0}`.replace('.', 'p')]),
    ...(wanted?.model === undefined ? [] : [wanted.model.toLowerCase()]),
    ...(within === undefined ? [] : ['within', `${within}ms`.replace('.', 'p')]),
  ];
  return words.join('_');
}

/** The queue of jobs with these needs, beside that of jobs without any. */
export function queueWithNeeds(queue: string, needs: MachineNeeds | undefined): string {
  const word = needs === undefined ? '' : needsWord(needs);
  return word === '' ? queue : `${queue}_${word}`;
}

/** Gives a part of a sentence: ` in the pool gpus with 2 GPUs H100 of 80 GiB`. Empty without needs. */
export function needsText({ pools, gpu: wanted, within_ms: within }: MachineNeeds = {}): string {
  const pool = pools === undefined ? '' : ` in the pool ${pools.join(' or ')}`;
  const where = within === undefined ? pool : `${pool} within ${within} ms`;
  if (wanted === undefined) return where;
  const { count, memory_gib: gib, model } = wanted;
  const size = gib === undefined ? '' : ` of ${gib} GiB`;
  return `${where} with ${count === 1 ? 'a GPU' : `${count} GPUs`}${model === undefined ? '' : ` ${model}`}${size}`;
}
