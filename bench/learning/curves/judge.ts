/** The areas below both sides' curves, and the interval of their difference. */
import { difference, meanOf } from './interval.ts';
import type { Difference } from './interval.ts';

/** The whole 95 % interval must lie within ± this. */
const margin = 0.03;

/** The rewards of each iteration, for each seed. */
export type Bundle = readonly (readonly number[])[];

export interface CurveResult {
  readonly name: string;
  readonly petrel: Bundle;
  readonly trl: Bundle;
}

/** The area below a curve, divided by its length: the mean over its iterations. */
export const area = meanOf;

export interface CurveVerdict {
  readonly petrel: number;
  readonly trl: number;
  readonly difference: Difference;
  readonly passed: boolean;
}

export function judge({ petrel, trl }: CurveResult): CurveVerdict {
  const [ours, theirs] = [petrel.map(area), trl.map(area)];
  const apart = difference(ours, theirs);
  const passed = apart.low >= -margin && apart.high <= margin;
  return { petrel: meanOf(ours), trl: meanOf(theirs), difference: apart, passed };
}
