/**
 * `npm run golden -- <folder> [--only <family,…>] [--engine torch [--ranks <n>] [--sequence|--tensor|--experts <n>]]`:
 * compares petrel with reference data. Exit code 1 when a case fails, 2 for wrong arguments.
 */
import { parseArgs } from 'node:util';
import type { Division } from '../../core/division.ts';
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

const USAGE = `usage: npm run golden -- <folder> [--only <family,…>] [--engine native|torch] [--ranks <n>]
                                  [--sequence <n>] [--tensor <n>] [--experts <n>]`;

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
  const { only, engine = 'native', ranks = '1', sequence = '1', tensor = '1', experts = '1' } = values;
  const [folder] = positionals;
  if (folder === undefined || positionals.length > 1) throw new Error(USAGE);
  const sizes = Object.entries({ ranks, sequence, tensor, experts }).map(([name, value]) => {
    if (!/^[1-9]\d*$/.test(value)) throw new Error(`--${name} needs a number, got ${value}\n${USAGE}`);
    return [name, Number(value)] as const;
  });
  const { ranks: processes = 1, ...division } = Object.fromEntries(sizes);
  const chosen = chosenFor(engine, processes, division);
  return { folder, ...(only !== undefined && { only: splitNames(only) }), chosen };
}

function words(args: readonly string[]) {
  const text = { type: 'string' } as const;
  const options = { only: text, engine: text, ranks: text, sequence: text, tensor: text, experts: text };
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    throw new Error(`${(error as Error).message}\n${USAGE}`, { cause: error });
  }
}

/** The evaluators that run models run them on this engine. */
function chosenFor(engine: string, ranks: number, division: Division): readonly Evaluator[] {
  if (engine === 'native') return evaluators;
  if (engine !== 'torch') throw new Error(`there is no engine ${engine}\n${USAGE}`);
  const environment = readEnvironment(petrelHome(), 'torch-cpu');
  if (environment === undefined) throw new Error('torch is not installed here: petrel engine install torch');
  const own = { ...environment, threads: 2 };
  const options = { compute: 'fp32', deterministic: true, threads: 2, ranks, division } as const;
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
