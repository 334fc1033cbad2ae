/** Does something grow? Slopes over rounds, each process for itself, so that a restart does not look like a drop. */
import type { ProcessSample } from './processes.ts';

export interface Growth {
  readonly kind: string;
  /** Processes that were measured at least once. */
  readonly incarnations: number;
  readonly samples: number;
  readonly firstMiB: number;
  readonly lastMiB: number;
  /** Over all processes with enough samples; undefined when there was none. */
  readonly MiBPerRound: number | undefined;
  readonly handlesPerRound: number | undefined;
  readonly firstHandles: number;
  readonly lastHandles: number;
}

/** A process warms up in its first rounds: code is compiled, caches fill, pools grow to their size. */
const warmUpRounds = 3;
/** Fewer say nothing about a slope. */
const leastSamples = 4;

export function growthOf(samples: readonly ProcessSample[]): Growth[] {
  const kinds = [...new Set(samples.map(({ kind }) => kind))].sort();
  return kinds.map((kind) => {
    const own = samples.filter((sample) => sample.kind === kind);
    const lives = [...new Set(own.map(({ incarnation }) => incarnation))].map((one) => own.filter(({ incarnation }) => incarnation === one));
    const settled = lives.map((life) => life.slice(warmUpRounds)).filter((life) => life.length >= leastSamples);
    return {
      kind,
      incarnations: lives.length,
      samples: own.length,
      firstMiB: own[0]?.residentMiB ?? 0,
      lastMiB: own.at(-1)?.residentMiB ?? 0,
      MiBPerRound: slope(settled, ({ residentMiB }) => residentMiB),
      handlesPerRound: slope(settled, ({ handles }) => handles),
      firstHandles: own[0]?.handles ?? 0,
      lastHandles: own.at(-1)?.handles ?? 0,
    };
  });
}

/** Least squares with one slope for all lives and a level for each. */
function slope(lives: readonly (readonly ProcessSample[])[], of: (sample: ProcessSample) => number): number | undefined {
  let [products, squares] = [0, 0];
  for (const life of lives) {
    const mean = (value: (sample: ProcessSample) => number): number => life.reduce((sum, sample) => sum + value(sample), 0) / life.length;
    const [round, level] = [mean((sample) => sample.round), mean(of)];
    for (const sample of life) {
      products += (sample.round - round) * (of(sample) - level);
      squares += (sample.round - round) ** 2;
    }
  }
  return squares === 0 ? undefined : products / squares;
}
