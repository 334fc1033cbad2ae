/** Scorers in Python, through the processes that runs use. */
import { at } from '../../../../core/at.ts';
import { createScorerHost, type ScorerHost } from '../../../../rewards/host/index.ts';
import type { Scored, ScorerInput, ScorerSettings } from '../../../../rewards/types.ts';
import { paramsOf } from '../../padded.ts';
import type { GoldenCase, Outcome } from '../../types.ts';
import { scorerInput } from './scorers.ts';

/** Cases by file; each is a scorer's name. */
export const pythonCases: Readonly<Record<string, (testCase: GoldenCase) => Promise<Outcome>>> = {
  geo3k: scoreGeometry,
  prime_math: scorePrimeMath,
  math_verify: async (testCase) => ({ score: (await scoredInPython('math_verify', scorerInput(testCase, ''))).score }),
};

async function scoreGeometry(testCase: GoldenCase): Promise<Outcome> {
  const [input, params] = [scorerInput(testCase, 'hiyouga/geometry3k'), paramsOf(testCase)];
  const settings = { use_boxed: params.flag('use_boxed'), format_score: params.number('format_score') };
  const { score, columns } = await scoredInPython('geo3k', input, settings);
  // The reference looks for a box in any case.
  const boxed = settings.use_boxed ? columns : (await scoredInPython('geo3k', input)).columns;
  return { score, ...columns, extracted: boxed['pred'] };
}

async function scorePrimeMath(testCase: GoldenCase): Promise<Outcome> {
  const { score, columns } = await scoredInPython('prime_math', scorerInput(testCase, 'numina_olympiads'));
  const { pred, acc, ...others } = columns;
  return { score, ...others, correct: acc, extracted: pred, extracted_returned: pred };
}

/** @throws Error with the reason when the sample fails. */
export async function scoredInPython(name: string, input: ScorerInput, settings: ScorerSettings = {}): Promise<Scored> {
  const kept = keptHost(name, settings);
  clearTimeout(kept.idle);
  const outcome = at(await kept.host.score([input]), 0);
  kept.idle = setTimeout(() => closeHost(kept), idleMs);
  if (!outcome.ok) throw new Error(outcome.reason);
  return outcome;
}

interface KeptHost {
  readonly id: string;
  readonly host: ScorerHost;
  idle: NodeJS.Timeout | undefined;
}

const hosts = new Map<string, KeptHost>();
/** A process that got no case for so long is ended. */
const idleMs = 2_000;

function keptHost(name: string, settings: ScorerSettings): KeptHost {
  const id = JSON.stringify([name, settings]);
  const kept = hosts.get(id) ?? { id, host: started(name, settings), idle: undefined };
  hosts.set(id, kept);
  return kept;
}

function closeHost({ id, host }: KeptHost): void {
  hosts.delete(id);
  void host.close();
}

function started(name: string, settings: ScorerSettings): ScorerHost {
  return createScorerHost({ type: 'builtin', name, settings }, { timeoutMs: 30_000, memoryMb: 1024, concurrency: 1 });
}
