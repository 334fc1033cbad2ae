/**
 * Programs by test cases (verl: `reward_score/prime_code`, from APPS). The program is the text after the last
 * "```python", up to the next "```"; without a block, the whole response.
 *
 *   1. All tests together, 5 s for each and 6 s for all. If every one passes, the score is 1.
 *   2. Otherwise the first 10 tests, each alone, 10 s each: the score is the share that passed.
 *
 * As in verl, the second stage takes every program as one that reads stdin, so a function scores 1 or 0. Other than
 * verl, programs run in a sandbox (docs/do/untrusted-code.md), in a process per test, with the real stdin and stdout;
 * and both stages together end before `reward.timeout`, so that a slow program is a wrong one and not a failed sample.
 *
 * Columns: `acc`, whether every test is known to pass; `reason`, if not, why.
 */
import { failureOf } from './code/verdict.ts';
import { scoreByFusion } from './code/fusion.ts';
import { openProgramPlace, runTests, type ProgramLimits } from './code/program.ts';
import { codeSettings, usualLimits, type CodeSettings } from './code/settings.ts';
import { parseCodeTests, type CodeTests } from './code/tests-of.ts';
import type { CallLimits, Scorer, ScorerSettings } from './types.ts';

const mostAlone = 10;
/** The first stage as a whole takes one second more than a test. */
const stageSlackMs = 1_000;
/** A test is not begun with less time than this. */
const leastMs = 200;

/** Throws UnfitError when programs cannot be run here, InvalidInputError for wrong settings. */
export function prepareCode(settings: ScorerSettings, limits: CallLimits): void {
  if (codeSettings(settings, limits).fusion === undefined) openProgramPlace();
}

export const code: Scorer = async ({ solutionStr, groundTruth }, given, limits = usualLimits) => {
  const tests = parseCodeTests(groundTruth);
  const settings = codeSettings(given, limits);
  if (settings.fusion !== undefined) return scoreByFusion(solutionStr, tests, settings.fusion, limits.timeoutMs);
  const judge = new Judge(programIn(solutionStr), tests, settings, limits.timeoutMs);
  const together = await judge.together();
  if (together === undefined) return { score: 1, acc: true };
  if (together.hopeless || (tests.function !== undefined && !settings.partialCalls))
    return { score: 0, acc: false, reason: together.reason };
  const { passed, of, reason = together.reason } = await judge.alone();
  const all = passed === of;
  return {
    score: passed / of,
    acc: all && of === tests.inputs.length,
    reason: all ? `all tests together: ${together.reason}` : `${passed} of ${of} tests passed; ${reason}`,
  };
};

/** The program in a response. */
function programIn(response: string): string {
  const [program = ''] = (response.split('```python').at(-1) ?? '').split('```');
  return program;
}

class Judge {
  readonly #program: string;
  readonly #tests: CodeTests;
  readonly #settings: CodeSettings;
  /** Time at which the scorer must have an answer: some time before its process would be ended. */
  readonly #deadline: number;

  constructor(program: string, tests: CodeTests, settings: CodeSettings, timeoutMs: number) {
    this.#program = program;
    this.#tests = tests;
    this.#settings = settings;
    this.#deadline = performance.now() + timeoutMs - Math.min(1_500, 0.15 * timeoutMs);
  }

  /** undefined: every test passed. `hopeless`: no test can pass. */
  async together(): Promise<{ reason: string; hopeless: boolean } | undefined> {
    const { inputs } = this.#tests;
    const limits = this.#limits(this.#settings.timeout);
    let failure: string | undefined;
    let judged = 0;
    const unfinished = await runTests(openProgramPlace(), this.#job(inputs), limits, (index, run) => {
      judged += 1;
      const why = failureOf(run, this.#tests, index, limits.secondsPerTest);
      if (why !== undefined) failure = `test ${index + 1} of ${inputs.length}: ${why}`;
      return why === undefined ? undefined : 'stop';
    });
    if (failure !== undefined) return { reason: failure, hopeless: false };
    if (unfinished === undefined) return undefined;
    const { reason, compiled } = unfinished;
    return compiled
      ? { reason: `test ${judged + 1} of ${inputs.length}: ${reason}`, hopeless: false }
      : { reason, hopeless: true };
  }

  /** `reason`: of the first failed test that was run. */
  async alone(): Promise<{ passed: number; of: number; reason?: string }> {
    const inputs = this.#tests.inputs.slice(0, mostAlone);
    let passed = 0;
    let reason: string | undefined;
    for (const [index, input] of inputs.entries()) {
      if (this.#leftMs() < leastMs) break;
      const why = await this.#one(index, input);
      if (why === undefined) passed += 1;
      else reason ??= `test ${index + 1}: ${why}`;
    }
    return { passed, of: inputs.length, ...(reason === undefined ? {} : { reason }) };
  }

  async #one(index: number, input: unknown): Promise<string | undefined> {
    const limits = this.#limits(this.#settings.timeoutEach);
    let why: string | undefined;
    const unfinished = await runTests(openProgramPlace(), this.#job([input]), limits, (_, run) => {
      why = failureOf(run, this.#tests, index, limits.secondsPerTest);
      return undefined;
    });
    return why ?? unfinished?.reason;
  }

  #job(inputs: readonly unknown[]) {
    const isCall = this.#tests.function !== undefined;
    const asLines = (input: unknown) => (Array.isArray(input) ? input.join('\n') : input);
    return {
      code: this.#program,
      function: this.#tests.function,
      inputs: isCall ? inputs : inputs.map(asLines),
    };
  }

  #limits(seconds: number): ProgramLimits {
    const { memoryMb, tasks, outputBytes, diskMb } = this.#settings;
    const wallMs = Math.max(leastMs, Math.min(seconds * 1000 + stageSlackMs, this.#leftMs()));
    const secondsPerTest = Math.min(seconds, wallMs / 1000);
    return { secondsPerTest, wallMs, bytesPerTest: outputBytes, memoryMb, tasks, diskMb };
  }

  #leftMs(): number {
    return this.#deadline - performance.now();
  }
}
