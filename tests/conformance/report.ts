import { worst, type CaseResult, type FileResult } from './run.ts';

export interface Totals {
  readonly passed: number;
  readonly failed: number;
}

/** The report of `npm run golden`: a block per family, then every failure, then the totals as the last line. */
export function report(files: readonly FileResult[]): { readonly lines: string[]; readonly totals: Totals } {
  const families = [...new Set(files.map((file) => file.family))];
  const lines = families.flatMap((family) =>
    familyLines(
      family,
      files.filter((file) => file.family === family),
    ),
  );
  const failures = files.flatMap(failureLines);
  if (failures.length > 0) lines.push('', 'failures', ...failures);
  const totals = { passed: count(files, 'passed'), failed: count(files, 'failed') };
  lines.push('', `${totals.passed} passed, ${totals.failed} failed`);
  return { lines, totals };
}

function familyLines(family: string, files: readonly FileResult[]): string[] {
  const [passed, failed] = [count(files, 'passed'), count(files, 'failed')];
  const lines = [`${family}: ${passed + failed} cases, ${passed} passed, ${failed} failed`];
  for (const [title, which] of [
    ['absolute', 'maxAbs'],
    ['relative', 'maxRel'],
  ] as const) {
    const { error, where } = worst(files, which);
    lines.push(`  largest ${title} error ${error.toExponential(2)}${error > 0 ? ` at ${where}` : ''}`);
  }
  const missing = files.filter((file) => !file.implemented);
  if (missing.length > 0) lines.push(`  not implemented: ${missing.map((file) => file.label).join(', ')}`);
  for (const file of files) lines.push(...optionalLines(file));
  return lines;
}

/** Optional cases of a file: a line with the counts, and one line for each that failed. */
function optionalLines(file: FileResult): string[] {
  const optional = file.cases.filter((result) => result.status.startsWith('optional'));
  const skipped = file.cases.filter((result) => result.status === 'skipped');
  const lines: string[] = [];
  if (optional.length > 0) {
    const passed = optional.filter((result) => result.status === 'optional-passed').length;
    lines.push(`  optional: ${file.label}, ${passed} of ${optional.length} passed`);
    if (file.implemented) {
      for (const result of optional) {
        if (result.status === 'optional-failed') lines.push(`    ${result.name}: ${result.reason}`);
      }
    }
  }
  if (skipped.length > 0) lines.push(`  optional: ${file.label}, ${skipped.length} skipped`);
  for (const reason of new Set(skipped.flatMap(({ lacks }) => lacks ?? []))) lines.push(`    ${reason}`);
  return lines;
}

function failureLines(file: FileResult): string[] {
  if (!file.implemented) {
    const failed = count([file], 'failed');
    return failed === 0 ? [] : [`  ${file.label}: not implemented (${failed} cases)`];
  }
  return file.cases
    .filter((result) => result.status === 'failed')
    .map((result) => `  ${file.label} ${result.name}: ${result.reason}`);
}

function count(files: readonly FileResult[], status: CaseResult['status']): number {
  return files.reduce((sum, file) => sum + file.cases.filter((result) => result.status === status).length, 0);
}
