/**
 * `npm run golden -- <folder> [--only <family,…>]`: compares petrel with reference data. Exit code 1 when a case fails,
 * 2 for wrong arguments.
 */
import { loadGolden } from './load.ts';
import { evaluators } from './registry.ts';
import { report } from './report.ts';
import { runFile, type FileResult } from './run.ts';

const USAGE = 'usage: npm run golden -- <folder> [--only <family,…>]';

async function main(args: readonly string[]): Promise<number> {
  const { folder, only } = parse(args);
  const files = await loadGolden(folder, only);
  const results: FileResult[] = [];
  for (const file of files) results.push(await runFile(file, evaluators));
  const { lines, totals } = report(results);
  console.log(lines.join('\n'));
  return totals.failed === 0 ? 0 : 1;
}

function parse(args: readonly string[]): { folder: string; only?: string[] } {
  const positional: string[] = [];
  let only: string[] | undefined;
  for (let i = 0; i < args.length; i++) {
    const arg = args[i] ?? '';
    if (arg === '--only') only = splitNames(args[++i]);
    else if (arg.startsWith('--only=')) only = splitNames(arg.slice('--only='.length));
    else if (arg.startsWith('-')) throw new Error(`unknown option ${arg}\n${USAGE}`);
    else positional.push(arg);
  }
  const [folder] = positional;
  if (folder === undefined || positional.length > 1) throw new Error(USAGE);
  return only === undefined ? { folder } : { folder, only };
}

function splitNames(value: string | undefined): string[] {
  const names = (value ?? '')
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
