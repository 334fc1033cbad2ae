/** Both sides' curves, and the interval of the difference of the areas below them. */
import { peerLines } from '../python.ts';
import { difference, meanOf } from './interval.ts';
import type { Difference } from './interval.ts';
import { petrelCurve } from './petrel-side.ts';
import { ENTRIES, example, settings } from './settings.ts';
import type { CurveEntry } from './settings.ts';

/** The whole 95 % interval must lie within ± this. */
export const margin = 0.03;

/** The rewards of each iteration, for each seed. */
export type Bundle = readonly (readonly number[])[];

export interface CurveResult {
  readonly name: string;
  readonly petrel: Bundle;
  readonly trl: Bundle;
}

export interface CurveRequest {
  readonly home: string;
  readonly python: string;
  readonly threads: number;
  readonly seeds: readonly number[];
  readonly say: (text: string) => void;
  readonly onResult: (result: CurveResult) => void;
}

/** Needs the stack of `home`. Returns the versions of the other side. */
export async function compareCurves({ home, python, threads, seeds, say, onResult }: CurveRequest): Promise<string> {
  let about = '';
  for (const entry of ENTRIES) {
    const [petrel, trl] = await Promise.all([petrelSide(entry), trlSide(entry)]);
    onResult({ name: entry.name, petrel, trl });
  }
  return about;

  async function petrelSide(entry: CurveEntry): Promise<number[][]> {
    const bundle: number[][] = [];
    for (const seed of seeds) {
      const rewards = await petrelCurve(home, entry, seed);
      bundle.push(rewards);
      say(`${entry.name}, seed ${seed}: petrel ${area(rewards).toFixed(4)}`);
    }
    return bundle;
  }

  async function trlSide(entry: CurveEntry): Promise<number[][]> {
    const bundle: number[][] = [];
    for await (const line of peerLines(python, 'trl_curves.py', workOf(entry, seeds, threads))) {
      const said = line as PeerLine;
      if ('about' in said) {
        about = said.about;
        continue;
      }
      bundle.push(said.rewards);
      say(`${entry.name}, seed ${said.seed}: TRL ${area(said.rewards).toFixed(4)}`);
    }
    return bundle;
  }
}

type PeerLine = { readonly about: string } | { readonly seed: number; readonly rewards: number[] };

function workOf({ algorithm, steps, miniBatches }: CurveEntry, seeds: readonly number[], threads: number) {
  const place = { model: `${example}/base`, rows: `${example}/train.jsonl` };
  return { ...place, ...settings, algorithm, steps, seeds, threads, whole_groups: miniBatches === 'whole groups' };
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
