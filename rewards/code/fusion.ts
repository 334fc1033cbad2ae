/**
 * Programs by test cases, run by a Sandbox Fusion service (verl: `reward_score/sandbox_fusion`). The first 10 tests,
 * one request each: {code, stdin, language, compile_timeout, run_timeout, memory_limit_MB}. A test passes when the
 * program ends well and its stdout equals the expected one, without line breaks at the end. Score: the share that
 * passed.
 *
 * Only a 504 is tried again: 3 tries, after 1 and 2 s. In verl any other trouble with the service counts as a wrong
 * answer; here it fails the sample, because it says nothing about the program.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ScorerReturn } from '../types.ts';
import { preamble } from './preamble.ts';
import type { FusionSettings } from './settings.ts';
import type { CodeTests } from './tests-of.ts';

const mostTests = 10;
const tries = 3;
/** Time limit of compiling, and of running. */
const timeoutSeconds = 10;
const requestTimeoutMs = (2 * timeoutSeconds + 10) * 1_000;

/** Throws Error with the trouble when the service gives no verdict. */
export async function scoreByFusion(
  response: string,
  tests: CodeTests,
  settings: FusionSettings,
  timeoutMs: number,
): Promise<ScorerReturn> {
  const program = fusionProgramIn(response);
  const code = tests.function === undefined ? program : callingProgram(program, tests.function);
  const inputs = tests.inputs.slice(0, mostTests);
  const deadline = AbortSignal.timeout(Math.max(1, timeoutMs - Math.min(1_500, 0.15 * timeoutMs)));
  const service = new Service(settings, deadline);
  const reasons = await Promise.all(
    inputs.map(async (input, i) => wrongWith(await service.run(code, asText(input)), asText(tests.outputs[i]))),
  );
  const passed = reasons.filter((reason) => reason === undefined).length;
  const first = reasons.findIndex((reason) => reason !== undefined);
  return {
    score: passed / inputs.length,
    acc: passed === tests.inputs.length,
    ...(first >= 0 && { reason: `${passed} of ${inputs.length} tests passed; test ${first + 1}: ${reasons[first]}` }),
  };
}

/** The program as verl finds it here: a block of any language counts when there is none of Python. */
export function fusionProgramIn(response: string): string {
  const python = response.split('```python');
  if (python.length > 1) return (python.at(-1) ?? '').split('```')[0] ?? '';
  const block = response.split('```')[1];
  if (block === undefined) return response;
  const [, language = '', rest] = /^([^\n]*)\n([\s\S]*)$/.exec(block) ?? [];
  return rest !== undefined && /^\p{L}+$/u.test(language.trim()) ? rest : block;
}

/** The program, then a call of its function with the JSON values that stdin has, one per line. Prints the result. */
function callingProgram(program: string, name: string): string {
  const quoted = JSON.stringify(name);
  return `${preamble}
${program}
if __name__ == "__main__":
    import json as _json, sys as _sys
    _text = _sys.stdin.read()
    _given = [_json.loads(_line) for _line in _text.split("\\n")] if _text.strip() else []
    _called = globals()[${quoted}] if ${quoted} in globals() else getattr(Solution(), ${quoted})
    _result = _called(*_given)
    print(_json.dumps(_result) if _result is None or isinstance(_result, (bool, dict, list, tuple)) else str(_result))
`;
}

interface RunReply {
  readonly status?: unknown;
  readonly message?: unknown;
  readonly compile_result?: StepReply | null;
  readonly run_result?: StepReply | null;
}

interface StepReply {
  readonly status?: unknown;
  readonly return_code?: unknown;
  readonly stdout?: unknown;
  readonly stderr?: unknown;
}

class Service {
  readonly #settings: FusionSettings;
  readonly #deadline: AbortSignal;

  constructor(settings: FusionSettings, deadline: AbortSignal) {
    this.#settings = settings;
    this.#deadline = deadline;
  }

  async run(code: string, stdin: string): Promise<RunReply> {
    const { url, memoryMb, maxConcurrent } = this.#settings;
    const body = JSON.stringify({
      code,
      stdin,
      language: 'python',
      compile_timeout: timeoutSeconds,
      run_timeout: timeoutSeconds,
      memory_limit_MB: memoryMb,
      files: {},
      fetch_files: [],
    });
    return withPlace(url, maxConcurrent, async () => {
      for (let attempt = 1; ; attempt++) {
        const response = await this.#post(body);
        if (response.status !== 504 || attempt === tries) return this.#reply(response);
        // When the time is over, the next request says so.
        await sleep(attempt * 1_000, undefined, { signal: this.#deadline }).catch(() => undefined);
      }
    });
  }

  async #post(body: string): Promise<Response> {
    const headers = { 'content-type': 'application/json', accept: 'application/json' };
    const signal = AbortSignal.any([this.#deadline, AbortSignal.timeout(requestTimeoutMs)]);
    try {
      return await fetch(this.#settings.url, { method: 'POST', headers, body, signal });
    } catch (error) {
      const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
      throw this.#trouble(cause instanceof Error ? cause.message : String(cause));
    }
  }

  async #reply(response: Response): Promise<RunReply> {
    const text = await response.text();
    if (!response.ok) throw this.#trouble(`HTTP ${response.status} ${text.slice(0, 200)}`);
    try {
      const reply: unknown = JSON.parse(text);
      if (typeof reply === 'object' && reply !== null) return reply;
    } catch {
      // said below
    }
    throw this.#trouble(`it answered no JSON object: ${text.slice(0, 100)}`);
  }

  #trouble(what: string): Error {
    return new Error(`the Sandbox Fusion service ${this.#settings.url} gave no verdict: ${what}`);
  }
}

/** undefined: the test passed. Throws Error when the service itself failed. */
function wrongWith(reply: RunReply, expected: string): string | undefined {
  const { status, compile_result: compiled, run_result: run } = reply;
  if (status === 'Success' && run?.status === 'Finished') {
    const printed = typeof run.stdout === 'string' ? run.stdout : '';
    return withoutEnd(printed) === withoutEnd(expected)
      ? undefined
      : `it printed ${show(printed)} instead of ${show(expected)}`;
  }
  if (status === 'Failed' && failed(compiled)) return `it does not compile: ${lastLine(compiled)}`;
  if (status === 'Failed' && run?.status === 'TimeLimitExceeded') return `it took more than ${timeoutSeconds} s`;
  if (status === 'Failed' && failed(run)) return lastLine(run) || 'it ended with an error';
  throw new Error(
    `the Sandbox Fusion service gave no verdict: status ${JSON.stringify(status)} ${String(reply.message ?? '').slice(0, 200)}`,
  );
}

function failed(step: StepReply | null | undefined): step is StepReply {
  if (step === null || step === undefined) return false;
  return (
    step.status === 'Error' ||
    step.status === 'TimeLimitExceeded' ||
    (step.status === 'Finished' && step.return_code !== 0)
  );
}

const lastLine = ({ stderr }: StepReply) =>
  typeof stderr === 'string' ? (stderr.trim().split('\n').at(-1) ?? '') : '';
const withoutEnd = (text: string) => text.replace(/\n+$/, '');
const asText = (value: unknown) => (Array.isArray(value) ? value.join('\n') : String(value));
const show = (text: string) => JSON.stringify(text.length <= 60 ? text : `${text.slice(0, 60)}…`);

/** Requests in flight and waiting ones, by service. */
const places = new Map<string, { busy: number; readonly waiting: (() => void)[] }>();

async function withPlace<T>(url: string, most: number, work: () => Promise<T>): Promise<T> {
  const place = places.get(url) ?? { busy: 0, waiting: [] };
  places.set(url, place);
  while (place.busy >= most) await new Promise<void>((resolve) => place.waiting.push(resolve));
  place.busy += 1;
  try {
    return await work();
  } finally {
    place.busy -= 1;
    place.waiting.shift()?.();
  }
}
