/**
 * `npm run golden -- <folder> [--only <family,…>] [--engine torch [--ranks <n>]]`: compares petrel with reference data.
 * Exit code 1 when a case fails, 2 for wrong arguments.
 */
import { parseArgs } from 'node:util';
import { readEnvironment } from '../../infra/engines/environment.ts';
import { petrelHome } from '../../infra/home.ts';
import { hfSamplers, torchEngines } from '../../workers/engine/engines/torch/index.ts';
import { loraEvaluator } from './families/lora.ts';
import { modelsEvaluator } from './families/models.ts';
import { loadGolden } from './load.ts';
import { evaluators } from './registry.ts';
import { report } from './report.ts';
import { runFile, type FileResult } from './run.ts';
import type { Evaluator } from './types.ts';

const USAGE = 'usage: npm run golden -- <folder> [--only <family,…>] [--engine native|torch] [--ranks <n>]';

async function main(args: readonly string[]): Promise<number> {
  const { folder, only, chosen } = parse(args);
  const files = await loadGolden(folder, only);
  const results: FileResult[] = [];
  for (const file of files) results.push(await runFile(file, chosen));
  const { lines, totals } = report(results);
  console.log(lines.join('\n'));
  return totals.failed === 0 ? 0 : 1;
}

function parse(args: readonly string[]): {
  folder: string;
  only?: string[];
  chosen: readonly Evaluator[];
} {
  const { values, positionals } = words(args);
  const { only, engine = 'native', ranks = '1' } = values;
  const [folder] = positionals;
  if (folder === undefined || positionals.length > 1) throw new Error(USAGE);
  if (!/^[1-9]\d*$/.test(ranks)) throw new Error(`--ranks needs a number, got ${ranks}\n${USAGE}`);
  return { folder, ...(only !== undefined && { only: splitNames(only) }), chosen: chosenFor(engine, Number(ranks)) };
}

function words(args: readonly string[]) {
  const text = { type: 'string' } as const;
  try {
    return parseArgs({ args: [...args], options: { only: text, engine: text, ranks: text }, allowPositionals: true });
  } catch (error) {
    throw new Error(`${(error as Error).message}\n${USAGE}`, { cause: error });
  }
}

/** The evaluators that run models run them on this engine. */
function chosenFor(engine: string, ranks: number): readonly Evaluator[] {
  if (engine === 'native') return evaluators;
  if (engine !== 'torch') throw new Error(`there is no engine ${engine}\n${USAGE}`);
  const environment = readEnvironment(petrelHome(), 'torch-cpu');
  if (environment === undefined) throw new Error('torch is not installed here: petrel engine install torch');
  const own = { ...environment, threads: 2 };
  const options = { compute: 'fp32', deterministic: true, threads: 2, ranks } as const;
  const engines = torchEngines(own);
  return [modelsEvaluator(engines, hfSamplers(own), options, () => true), loraEvaluator(engines, options)];
}

function splitNames(value: string): string[] {
  const names = value
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  if (names.length === 0) throw new Error(`--only needs a family\n${USAGE}`);
  return names;
}

main(process.argv.slice(2)).then(
  (code) => process.exit(code),
  (error: unknown) => {
    console.error(error instanceof Error ? error.message : String(error));
    process.exit(2);
  },
);
