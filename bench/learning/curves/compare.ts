/** Makes both sides' curves. */
import { peerLines } from '../python.ts';
import { area } from './judge.ts';
import type { CurveResult } from './judge.ts';
import { petrelCurve } from './petrel-side.ts';
import { ENTRIES, example, settings } from './settings.ts';
import type { CurveEntry } from './settings.ts';

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
