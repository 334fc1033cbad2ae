/** The processes of engines that a worker has started, and what happens to them. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { identify, waitForExit } from '../../infra/stack/process.ts';
import type { ProcessIdentity } from '../../infra/stack/process.ts';
import type { Injector } from '../inject.ts';
import { patienceMs } from '../patience.ts';
import type { EngineChoice } from './engine-choice.ts';
import { trainerRanks } from './engine-choice.ts';
import type { RankFault } from './engine-faults.ts';

interface Rank {
  readonly name: string;
  readonly identity: ProcessIdentity;
}

/**
 * Does it to ranks of a worker that is stopped. Returns those that must end because of it: one without memory ends only
 * when it needs some (tests/engines/faults.test.ts).
 */
export async function strikeRanks(
  injector: Injector,
  { of, which, how }: RankFault,
  worker: ProcessIdentity,
  choice: EngineChoice,
): Promise<readonly Rank[]> {
  const found = ranksOf(worker.pid, of, choice);
  const victims = which === 'one' ? found.slice(-1) : found;
  if (victims.length === 0) throw new Error(`the worker has no process of the ${of}`);
  if (how === 'kill') await injector.kill(victims);
  for (const { identity } of victims) {
    if (how === 'stop') injector.freeze(identity);
    if (how === 'exhaust') execFileSync('prlimit', ['--pid', String(identity.pid), '--as=1', '--data=1']);
  }
  return how === 'exhaust' ? [] : victims;
}

/** A group in which a rank does not answer, or fails, ends with all its ranks. */
export async function mustEnd(ranks: readonly Rank[]): Promise<void> {
  for (const { name, identity } of ranks)
    if (!(await waitForExit(identity, patienceMs))) throw new Error(`${name} (${identity.pid}) lives on`);
}

/** Oldest first. Several models have a group of ranks each; a sampler is one process. */
function ranksOf(worker: number, of: RankFault['of'], { sampler }: EngineChoice): readonly Rank[] {
  const program = of === 'sampler' && sampler === 'vllm' ? 'engines/vllm/rank.py' : 'engines/torch/rank.py';
  const size = of === 'sampler' ? 1 : trainerRanks;
  return childrenOf(worker)
    .flatMap((pid) => {
      const [path, settings] = argumentsOf(pid).slice(-2);
      if (path?.endsWith(program) !== true || settings === undefined) return [];
      const { rank, ranks } = JSON.parse(settings) as { readonly rank: number; readonly ranks: number };
      const identity = identify(pid);
      return ranks === size && identity !== undefined ? [{ name: `rank ${rank} of the ${of}`, identity }] : [];
    })
    .sort((a, b) => a.identity.pid - b.identity.pid);
}

const childrenOf = (parent: number): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => parentOf(pid) === parent);

const parentOf = (pid: number): number => Number(/^PPid:\s*(\d+)/m.exec(read(`/proc/${pid}/status`))?.[1] ?? 0);

const argumentsOf = (pid: number): string[] => read(`/proc/${pid}/cmdline`).split('\0').slice(0, -1);

/** Empty for a process that has ended. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return '';
    throw error;
  }
}
