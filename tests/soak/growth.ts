/**
 * Finds out whether something grows: slopes over rounds, separately for each process, so that a restart does not look
 * like a drop.
 */
import { median } from '../../bench/clock.ts';
import type { ProcessSample } from './processes.ts';

/** A slope in MiB or handles per round. */
export interface Slope {
  readonly perRound: number;
  /** Standard error of the slope. */
  readonly error: number;
}

export interface Growth {
  readonly kind: string;
  /** Number of processes that were measured at least once. */
  readonly incarnations: number;
  readonly samples: number;
  readonly firstMiB: number;
  readonly lastMiB: number;
  /** The slope over all processes with enough samples; undefined when there was none. */
  readonly memory: Slope | undefined;
  readonly handles: Slope | undefined;
  /**
   * Resident memory in MiB after this many rounds of a process's life: the median of the processes that lived that
   * long.
   */
  readonly atAge: ReadonlyMap<number, number>;
  readonly firstHandles: number;
  readonly lastHandles: number;
}

/**
 * A heap grows until its next great collection: the control process has one in some sixteen rounds, and all processes
 * begin in step. So memory is judged over two such times at least, after the first; handles are all open after a few
 * rounds. Fewer samples than `least` say nothing about a slope.
 */
const settledMemory = { after: 18, least: 32 };
const settledHandles = { after: 3, least: 4 };

export const ages = [1, 5, 10, 15, 20, 30, 40, 50, 60] as const;

export function growthOf(samples: readonly ProcessSample[]): Growth[] {
  const kinds = [...new Set(samples.map(({ kind }) => kind))].sort();
  return kinds.map((kind) => {
    const own = samples.filter((sample) => sample.kind === kind);
    const lives = [...new Set(own.map(({ incarnation }) => incarnation))].map((one) =>
      own.filter(({ incarnation }) => incarnation === one),
    );
    const settled = ({ after, least }: typeof settledMemory) =>
      lives.map((life) => life.slice(after)).filter((life) => life.length >= least);
    return {
      kind,
      incarnations: lives.length,
      samples: own.length,
      firstMiB: own[0]?.residentMiB ?? 0,
      lastMiB: own.at(-1)?.residentMiB ?? 0,
      memory: slope(settled(settledMemory), ({ residentMiB }) => residentMiB),
      handles: slope(settled(settledHandles), ({ handles }) => handles),
      atAge: new Map(ages.flatMap((age) => memoryAt(lives, age))),
      firstHandles: own[0]?.handles ?? 0,
      lastHandles: own.at(-1)?.handles ?? 0,
    };
  });
}

function memoryAt(lives: readonly (readonly ProcessSample[])[], age: number): [number, number][] {
  const there = lives.flatMap((life) => life[age - 1]?.residentMiB ?? []);
  return there.length === 0 ? [] : [[age, median(there)]];
}

/** Least squares with one slope for all lives and a level for each. */
function slope(lives: readonly (readonly ProcessSample[])[], of: (sample: ProcessSample) => number): Slope | undefined {
  const points = lives.flatMap((life) => {
    const mean = (value: (sample: ProcessSample) => number): number =>
      life.reduce((sum, sample) => sum + value(sample), 0) / life.length;
    const [round, level] = [mean((sample) => sample.round), mean(of)];
    return life.map((sample) => ({ x: sample.round - round, y: of(sample) - level }));
  });
  const freedom = points.length - lives.length - 1;
  if (freedom < 1) return undefined;
  const total = (term: (point: { x: number; y: number }) => number): number =>
    points.reduce((sum, point) => sum + term(point), 0);
  const squares = total(({ x }) => x * x);
  const perRound = total(({ x, y }) => x * y) / squares;
  return { perRound, error: Math.sqrt(total(({ x, y }) => (y - perRound * x) ** 2) / freedom / squares) };
}

/** Is the slope below `most`? Undefined when twice its error allows both answers. */
export function judge(slope: Slope | undefined, most: number): boolean | undefined {
  if (slope === undefined) return undefined;
  if (slope.perRound + 2 * slope.error <= most) return true;
  return slope.perRound - 2 * slope.error > most ? false : undefined;
}
