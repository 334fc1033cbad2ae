/**
 * Runs a program of a model on test cases, in one sandbox. runner.py, which is inside, has the inputs but not the
 * answers.
 */
import { UnfitError } from '../../core/errors.ts';
import { LineSplitter } from '../lines.ts';
import { packageFile } from '../package-file.ts';
import { showLimit, type SandboxLimits } from '../sandbox/limits.ts';
import { openWalls, trial } from '../sandbox/open-walls.ts';
import { findPython, type PythonFiles } from '../sandbox/python.ts';
import { runInSandbox, type SandboxEnd } from '../sandbox/run.ts';
import type { Walls } from '../sandbox/walls.ts';

/** What one test gave. */
export interface TestRun {
  readonly end: 'ok' | 'failed' | 'signal' | 'time' | 'output';
  /** What it printed. */
  readonly out: string;
  /** The function's result, as runner.py writes it. */
  readonly value: string | null;
  /** The exception or the signal. */
  readonly error: string;
}

export interface ProgramTests {
  readonly code: string;
  /** The function to call; undefined: the program reads stdin. */
  readonly function: string | undefined;
  readonly inputs: readonly unknown[];
}

/** Limits of one test, and of all tests together. */
export interface ProgramLimits {
  readonly secondsPerTest: number;
  readonly bytesPerTest: number;
  readonly wallMs: number;
  readonly memoryMb: number;
  readonly tasks: number;
  readonly diskMb: number;
}

/** The place where programs run. */
export interface ProgramPlace {
  readonly walls: Walls;
  readonly python: PythonFiles;
  /** The file runner.py. */
  readonly runner: string;
}

/** Throws UnfitError `NoSandbox` or `NoPython`, with what to type. */
export function openProgramPlace(): ProgramPlace {
  const runner = packageFile('rewards', 'code', 'runner.py');
  const place = { walls: openWalls(), python: findPython(), runner };
  if (!proven.has(place.python)) tryPython(place);
  proven.add(place.python);
  return place;
}

/** Interpreters that have run in a sandbox. */
const proven = new WeakSet<PythonFiles>();

/** Throws UnfitError `NoPython` when the interpreter cannot run in a sandbox. */
export function tryPython({ walls, python }: Pick<ProgramPlace, 'walls' | 'python'>): void {
  const { end, said } = trial(
    walls,
    [python.program, '-s', '-B', '-c', 'import json, select, traceback'],
    python.binds,
  );
  if (end === 0) return;
  const reason = said.split('\n').find((line) => !line.startsWith('end=')) ?? said;
  throw new UnfitError('NoPython', `${python.program} does not run in a sandbox: ${reason}`, {
    hint: 'every user must be able to read it: set PETREL_PYTHON, for example to /usr/bin/python3',
  });
}

/** Bytes that one byte can become in JSON: six characters. */
const jsonBytes = 6;
const moreBytes = 64 * 1024;
const runnerInside = '/petrel/runner.py';
/** The runner is a process itself. */
const runnerTasks = 1;

const environment = {
  PATH: '/usr/bin:/bin',
  HOME: '/tmp',
  TMPDIR: '/tmp',
  USER: 'sandbox',
  LANG: 'C.UTF-8',
  // The order of sets does not change from one run to the next.
  PYTHONHASHSEED: '0',
  OMP_NUM_THREADS: '1',
  OPENBLAS_NUM_THREADS: '1',
  MKL_NUM_THREADS: '1',
};

/** Why tests were not run. */
export interface Unfinished {
  readonly reason: string;
  /** Could the program be compiled? */
  readonly compiled: boolean;
}

/**
 * Calls `judge` with each test in order, until it returns 'stop'. Returns why the tests after the last judged one were
 * not run; undefined when all were run, or `judge` stopped. Throws Error when the sandbox could not be built, or was
 * ended from outside.
 */
export async function runTests(
  { walls, python, runner }: ProgramPlace,
  { code, function: name, inputs }: ProgramTests,
  limits: ProgramLimits,
  judge: (index: number, run: TestRun) => 'stop' | undefined,
): Promise<Unfinished | undefined> {
  let next = 0;
  let refusal: string | undefined;
  let stopped = false;
  const take = (line: string) => {
    const reply = parseReply(line);
    if (stopped || reply === undefined) return;
    if (reply.end === 'syntax') refusal = reply.error;
    else if (reply.test === next) stopped = judge(next++, reply) === 'stop';
  };
  const lines = new LineSplitter(take, limits.bytesPerTest * jsonBytes + moreBytes);
  const sandboxLimits = limitsOf(limits, inputs.length);
  const { end, stderr } = await runInSandbox(walls, {
    command: [python.program, '-s', '-B', runnerInside],
    stdin: JSON.stringify({
      code,
      function: name ?? null,
      tests: inputs,
      seconds: limits.secondsPerTest,
      bytes: limits.bytesPerTest,
    }),
    env: environment,
    binds: [...python.binds, { path: runner, at: runnerInside }],
    limits: sandboxLimits,
    onStdout: (chunk) => {
      lines.push(chunk);
      return stopped ? 'stop' : undefined;
    },
  });
  if (stopped || next === inputs.length) return undefined;
  // That says nothing about the program, so it must not score 0.
  if (end.type === 'lost') throw new Error(`the sandbox of the program was lost: ${end.reason}`);
  return { reason: refusal ?? whyUnfinished(end, sandboxLimits, stderr), compiled: refusal === undefined };
}

function limitsOf(limits: ProgramLimits, tests: number): SandboxLimits {
  return {
    wallMs: limits.wallMs,
    cpuMs: limits.wallMs,
    memoryMb: limits.memoryMb,
    tasks: limits.tasks + runnerTasks,
    outputBytes: tests * (limits.bytesPerTest * jsonBytes + moreBytes),
    diskMb: limits.diskMb,
    openFiles: 256,
  };
}

function whyUnfinished(end: SandboxEnd, limits: SandboxLimits, stderr: string): string {
  switch (end.type) {
    case 'limit':
      return showLimit(end.limit, { ...limits, tasks: limits.tasks - runnerTasks });
    case 'signal':
      return `it ended the process that runs its tests, by signal ${end.signal}`;
    default:
      return `the process that runs its tests ended: ${stderr.trim().split('\n').at(-1) || 'without a word'}`;
  }
}

type Reply = (TestRun & { readonly test: number }) | { readonly end: 'syntax'; readonly error: string };

/** undefined for what is no line of runner.py: a program can write there, too. */
function parseReply(line: string): Reply | undefined {
  try {
    const reply = JSON.parse(line) as Record<string, unknown>;
    const { end, error, test, out, value } = reply;
    if (typeof error !== 'string') return undefined;
    if (end === 'syntax') return { end, error };
    if (!isEnd(end) || typeof test !== 'number' || typeof out !== 'string') return undefined;
    return { end, test, out, error, value: typeof value === 'string' ? value : null };
  } catch {
    return undefined;
  }
}

function isEnd(end: unknown): end is TestRun['end'] {
  return ['ok', 'failed', 'signal', 'time', 'output'].some((known) => known === end);
}
