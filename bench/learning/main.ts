/**
 * `npm run learning`: does petrel learn as TRL does? Recorded batches through both sides' losses, and learning curves
 * of both. The last line is `N passed, N failed`; the exit code is 1 when something failed.
 */
import { openStack } from '../../api/index.ts';
import { errorToJson, PetrelError } from '../../core/errors.ts';
import { engineInfo } from '../../native/index.ts';
import { describeMachine } from '../machine.ts';
import { privateHome } from '../run/private-home.ts';
import { compareCurves } from './curves/compare.ts';
import { judge } from './curves/judge.ts';
import type { CurveResult } from './curves/judge.ts';
import { drawCurves, keepCurves } from './curves/kept.ts';
import { curveCells, curveHeads, curveLine } from './curves/table.ts';
import { writePart } from './document.ts';
import { compareAll } from './exact/compare.ts';
import type { Compared } from './exact/compare.ts';
import { exactCells, exactHeads, exactLine } from './exact/table.ts';
import { readOptions } from './options.ts';
import type { LearningOptions, Part } from './options.ts';
import { checkedPython } from './python.ts';

interface Surroundings {
  readonly home: string;
  readonly python: string;
  readonly options: LearningOptions;
  readonly say: (text: string) => void;
}

const onStderr = (text: string): void => console.error(text);

async function main(words: readonly string[]): Promise<void> {
  const options = readOptions(words);
  if (options.draw) return conclude(drawCurves().map((result) => judge(result).passed));
  const python = await checkedPython(process.env['PETREL_PYTHON']);
  const { home, remove } = privateHome();
  process.once('SIGINT', () => void remove().finally(() => process.exit(130)));
  const passed: boolean[] = [];
  try {
    await openStack({ home, env: process.env }).up();
    for (const part of options.parts) passed.push(...(await run[part]({ home, python, options, say: onStderr })));
  } finally {
    await remove();
  }
  conclude(passed);
}

function conclude(passed: readonly boolean[]): void {
  const failed = passed.filter((one) => !one).length;
  console.log(`${passed.length - failed} passed, ${failed} failed`);
  process.exitCode = failed > 0 || passed.length === 0 ? 1 : 0;
}

const run: Readonly<Record<Part, (surroundings: Surroundings) => Promise<boolean[]>>> = { exact, curves };

async function exact({ home, python, options: { threads, write }, say }: Surroundings): Promise<boolean[]> {
  const rows: Compared[] = [];
  console.log(exactLine(exactHeads));
  const onCompared = (row: Compared) => {
    rows.push(row);
    console.log(`${exactLine(exactCells(row))}${row.passed ? '' : ' FAILED'}`);
  };
  const about = await compareAll({ home, python, threads, say, onCompared });
  if (write)
    writePart('exact', conditions('npm run learning -- exact --write', about), exactHeads, rows.map(exactCells));
  return rows.map((row) => row.passed);
}

async function curves({ home, python, options, say }: Surroundings): Promise<boolean[]> {
  const { threads, seeds, write } = options;
  const results: CurveResult[] = [];
  console.log(curveLine(curveHeads));
  const onResult = (result: CurveResult) => {
    results.push(result);
    console.log(`${curveLine(curveCells(result))}${judge(result).passed ? '' : ' FAILED'}`);
  };
  const about = await compareCurves({ home, python, threads, seeds, say, onResult });
  if (write) {
    keepCurves({
      made: conditions(`npm run learning -- curves --seeds ${seeds.length} --write`, about),
      curves: results,
    });
    drawCurves();
  }
  return results.map((result) => judge(result).passed);
}

function conditions(command: string, about: string): string[] {
  const { threads } = engineInfo();
  const machine = describeMachine({ precision: 'fp32', threads, quick: false }, process.env);
  return [`\`${command}\``, `${machine}; ${about}`];
}

main(process.argv.slice(2)).catch((error: unknown) => {
  const { message, hint } = errorToJson(error);
  console.error(error instanceof PetrelError ? `learning: ${message}${hint === undefined ? '' : `\n${hint}`}` : error);
  process.exitCode = error instanceof PetrelError && error.code === 'InvalidInput' ? 2 : 1;
});
