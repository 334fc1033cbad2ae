/** The curves that are kept in the repository, and the table and the picture in the docs that are made from them. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../../infra/home.ts';
import { writePart } from '../document.ts';
import type { CurveResult } from './judge.ts';
import { picture } from './picture.ts';
import { curveCells, curveHeads } from './table.ts';

const data = join(packageRoot(), 'bench/learning/curves.json');
const drawing = join(packageRoot(), 'docs/look-up/learning-as-trl.svg');

export interface KeptCurves {
  /** The command, the machine with the commit, and the versions of the other side. */
  readonly made: readonly string[];
  readonly curves: readonly CurveResult[];
}

/** One comparison a line. */
export function keepCurves({ made, curves }: KeptCurves): void {
  const short = (rewards: readonly number[]) => rewards.map((reward) => Number(reward.toFixed(4)));
  const lines = curves.map(({ name, petrel, trl }) =>
    JSON.stringify({ name, petrel: petrel.map(short), trl: trl.map(short) }),
  );
  const text = `{\n  "made": ${JSON.stringify(made)},\n  "curves": [\n    ${lines.join(',\n    ')}\n  ]\n}\n`;
  writeFileSync(data, text);
}

/** Writes the table and the picture. */
export function drawCurves(): readonly CurveResult[] {
  const { made, curves } = JSON.parse(readFileSync(data, 'utf8')) as KeptCurves;
  writePart('curves', made, curveHeads, curves.map(curveCells));
  writeFileSync(drawing, picture(curves));
  return curves;
}
