/** Whether a test passed, and why not. */
import type { CodeTests } from './tests-of.ts';
import { parsePythonJson } from './json-values.ts';
import { isExpectedOutput } from './output.ts';
import type { TestRun } from './program.ts';
import { decodeResult, isExpectedResult, showValue } from './values.ts';

const shown = 60;

/** undefined: it passed. Throws Error when the expected value is no JSON: the row is wrong, not the program. */
export function failureOf(run: TestRun, tests: CodeTests, index: number, seconds: number): string | undefined {
  switch (run.end) {
    case 'time':
      return `it took more than ${Number(seconds.toFixed(1))} s`;
    case 'output':
      return 'it printed too much';
    case 'signal':
      return `it ended by ${run.error}`;
    case 'failed':
      return run.error.split('\n').at(-1) || 'it ended with an error';
    case 'ok':
      return tests.function === undefined ? wrongOutput(run.out, tests.outputs[index]) : wrongResult(run, tests, index);
  }
}

function wrongOutput(printed: string, output: unknown): string | undefined {
  const expected = Array.isArray(output) ? output.join('\n') : String(output);
  return isExpectedOutput(printed, expected) ? undefined : `it printed ${show(printed)} instead of ${show(expected)}`;
}

function wrongResult({ value }: TestRun, { outputs }: CodeTests, index: number): string | undefined {
  const output = outputs[index];
  const expected = parsePythonJson(typeof output === 'string' ? output : JSON.stringify(output));
  const result = value === null ? undefined : decoded(value);
  if (result === undefined) return 'it returned no value';
  if (isExpectedResult(result, expected)) return undefined;
  return `it returned ${cut(showValue(result))} instead of ${cut(showValue(expected))}`;
}

/** undefined for what runner.py did not write. */
function decoded(value: string) {
  try {
    return decodeResult(JSON.parse(value));
  } catch {
    return undefined;
  }
}

const show = (text: string) => JSON.stringify(cut(text.trim()));
const cut = (text: string) => (text.length <= shown ? text : `${text.slice(0, shown)}…`);
