import type { LoadedFile } from './load.ts';
import { compareOutcome, largest, NO_ERROR, type Extreme } from './compare.ts';
import type { Evaluator, GoldenCase, Tolerance } from './types.ts';

/** The result of one case. Optional cases (`required: false`, `skip`) never count as failed. */
export interface CaseResult {
  readonly name: string;
  readonly status: 'passed' | 'failed' | 'optional-passed' | 'optional-failed' | 'skipped';
  readonly reason?: string;
  /** Skipped because this machine lacks something: what to type. */
  readonly lacks?: string;
  readonly maxAbs: Extreme;
  readonly maxRel: Extreme;
}

export interface FileResult {
  readonly label: string;
  readonly family: string;
  /** False: no evaluator accepts the file, and its required cases all count as failed. */
  readonly implemented: boolean;
  readonly cases: readonly CaseResult[];
}

const EXACT: Tolerance = { abs: 0, rel: 0 };

export async function runFile(loaded: LoadedFile, evaluators: readonly Evaluator[]): Promise<FileResult> {
  const { label, file } = loaded;
  const evaluator = evaluators.find((candidate) => candidate.family === file.family && candidate.handles(file));
  const cases: CaseResult[] = [];
  for (const testCase of file.cases) cases.push(await runCase(testCase, loaded, evaluator));
  return { label, family: file.family, implemented: evaluator !== undefined, cases };
}

async function runCase(
  testCase: GoldenCase,
  loaded: LoadedFile,
  evaluator: Evaluator | undefined,
): Promise<CaseResult> {
  const none = { name: testCase.name, maxAbs: NO_ERROR, maxRel: NO_ERROR };
  if (testCase.skip !== undefined) return { ...none, status: 'skipped', reason: testCase.skip };
  const optional = testCase.required === false || loaded.file.required === false;
  if (evaluator === undefined) {
    return { ...none, status: optional ? 'optional-failed' : 'failed', reason: 'not implemented' };
  }
  const missing = evaluator.missing?.(testCase, loaded.file);
  if (missing !== undefined) return { ...none, status: 'skipped', reason: missing, lacks: missing };
  const { differences, maxAbs, maxRel } = await evaluateCase(testCase, loaded, evaluator);
  const passed = differences.length === 0;
  const status = optional ? (passed ? 'optional-passed' : 'optional-failed') : passed ? 'passed' : 'failed';
  return { name: testCase.name, status, maxAbs, maxRel, ...(passed ? {} : { reason: differences.join('; ') }) };
}

async function evaluateCase(testCase: GoldenCase, { file, folder }: LoadedFile, evaluator: Evaluator) {
  const expected = testCase.expected ?? {};
  const refusal = { maxAbs: NO_ERROR, maxRel: NO_ERROR };
  try {
    const outcome = await evaluator.evaluate(testCase, file, folder);
    if (typeof expected['error'] === 'string') {
      return { ...refusal, differences: [`accepted, but must be refused (${expected['error']})`] };
    }
    const tolerance = outcome.tolerance ?? testCase.tolerance ?? file.tolerance ?? EXACT;
    return compareOutcome(outcome.got, outcome.expected ?? expected, tolerance, testCase.inputs);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    if (typeof expected['error'] !== 'string') return { ...refusal, differences: [`threw: ${message}`] };
    // Templates: `exact` means that the message is the template's own and must be equal.
    const wrong = expected['exact'] === true && message !== expected['error'];
    return { ...refusal, differences: wrong ? [`refused with "${message}", expected "${expected['error']}"`] : [] };
  }
}

/** Largest error over the cases of a file or family; its place starts with the case. */
export function worst(files: readonly FileResult[], which: 'maxAbs' | 'maxRel'): Extreme {
  let extreme = NO_ERROR;
  for (const file of files) {
    for (const result of file.cases) {
      const { error, where } = result[which];
      extreme = largest(extreme, { error, where: `${file.label} ${result.name} ${where}` });
    }
  }
  return extreme;
}
