/** Finds the processes of a stack whose supervisor is gone, and ends those that are not wanted. */
import { childVariable, fingerprint, kindVariable, stackVariable } from './child-spec.ts';
import type { ChildSpec } from './child-spec.ts';
import { ancestors, isAlive, processesWith, terminate } from './process.ts';
import type { ListedProcess, ProcessIdentity } from './process.ts';
import { childKinds, stackFile } from './state.ts';
import type { ChildKind, StackInfo } from './state.ts';

/** Order of stopping: workers first, and last the servers that they talk to. */
export const stopOrder: readonly ChildKind[] = [...childKinds].reverse();

/** How long such a process may take after SIGTERM; the same times that its supervisor would have used. */
const graceMs: Readonly<Record<ChildKind, number>> = { worker: 20_000, control: 10_000, nats: 5_000, temporal: 0 };

/**
 * name → living process that matches `specs`. An entry of stack.json is valid if a process with its pid and start time
 * lives. A process that was started just before the supervisor died is not in the file and is recognised by its command
 * line.
 */
export function adoptable(
  home: string,
  specs: readonly ChildSpec[],
  previous: StackInfo | undefined,
): Map<string, ProcessIdentity> {
  const marked = markedProcesses(home);
  const found = new Map<string, ProcessIdentity>();
  for (const spec of specs) {
    const recorded = previous?.children.find(({ name }) => name === spec.name);
    const process =
      recorded?.fingerprint === fingerprint(spec) ? (livingRecord(recorded) ?? sameCommand(marked, spec)) : undefined;
    if (process) found.set(spec.name, process);
  }
  return found;
}

/** Processes of this stack that are neither kept nor descendants of a kept one. */
export function strangers(home: string, kept: readonly ProcessIdentity[]): ListedProcess[] {
  const pids = new Set(kept.map(({ pid }) => pid));
  return markedProcesses(home).filter(({ pid }) => ![pid, ...ancestors(pid)].some((one) => pids.has(one)));
}

/** Ends processes in the stack's stopping order. Resolves with the names of the children among them. */
export async function stopProcesses(
  processes: readonly ListedProcess[],
  log: (line: string) => void = () => {},
): Promise<string[]> {
  const names = new Set<string>();
  for (const kind of stopOrder) {
    const group = processes.filter(({ env }) => env.get(kindVariable) === kind);
    await Promise.all(
      group.map(async (process) => {
        const name = process.env.get(childVariable) ?? kind;
        log(`${name}: ending orphaned process ${process.pid}`);
        await terminate(process, graceMs[kind]);
        names.add(name);
      }),
    );
  }
  return [...names];
}

function markedProcesses(home: string): ListedProcess[] {
  return processesWith(stackVariable, stackFile(home)).filter(({ env }) => env.has(kindVariable));
}

function livingRecord({ pid, startTime }: StackInfo['children'][number]): ProcessIdentity | undefined {
  if (pid === undefined || startTime === undefined) return undefined;
  return isAlive({ pid, startTime }) ? { pid, startTime } : undefined;
}

function sameCommand(
  marked: readonly ListedProcess[],
  { name, command, args }: ChildSpec,
): ProcessIdentity | undefined {
  const wanted = JSON.stringify([command, ...args]);
  const match = marked.find(
    (process) => process.env.get(childVariable) === name && JSON.stringify(process.args) === wanted,
  );
  return match && { pid: match.pid, startTime: match.startTime };
}
