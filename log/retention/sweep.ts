/** The janitor: one pass over a whole store. It may run at any time, also several times in parallel. */
import type { Store } from '../../core/ports/store.ts';
import { runIdPattern } from '../../core/ids.ts';
import { folderName, keys } from '../../core/records/keys.ts';
import { RunLog } from '../run/run-log.ts';
import { passOverInputs } from './inputs.ts';
import type { InputsPass } from './inputs.ts';
import { passOver } from './pass.ts';
import type { PassOptions, RunPass } from './pass.ts';

/** Long enough for a listing to catch up, and for a process that is reading samples or loading a checkpoint. */
export const defaultGraceMs = 10 * 60_000;
/** Longer, because storing inputs again is expensive and a starting run does not name them yet. */
const inputsGraceMs = 24 * 3_600_000;
/** A writer that is slower than this counts as dead. */
const leftoverAgeMs = 24 * 3_600_000;

export interface Sweep {
  readonly runs: readonly RunPass[];
  readonly inputs: InputsPass;
  /** Temporary files and unfinished uploads of dead writers. */
  readonly leftovers: number;
}

export async function sweepStore(
  store: Store,
  options: PassOptions,
  done: (pass: RunPass) => void = () => {},
): Promise<Sweep> {
  const runs: RunPass[] = [];
  for (const name of await store.children(keys.runs)) {
    options.signal?.throwIfAborted();
    const runId = folderName(name);
    if (!runIdPattern.test(runId)) continue;
    const pass = await passOver(new RunLog(store, runId), options);
    runs.push(pass);
    done(pass);
  }
  const graceMs = options.graceMs === 0 ? 0 : Math.max(options.graceMs, inputsGraceMs);
  const inputs = await passOverInputs(store, { ...options, graceMs });
  options.signal?.throwIfAborted();
  const before = new Date(options.now.getTime() - leftoverAgeMs);
  return { runs, inputs, leftovers: options.dryRun === true ? 0 : ((await store.removeLeftovers?.(before)) ?? 0) };
}

export function sayPass(pass: RunPass, say: (text: string) => void): void {
  const text = passText(pass);
  if (text !== undefined) say(text);
}

/** A line for the run's log about a pass; undefined when the pass removed nothing. */
function passText({ floor, removed, problem }: RunPass): string | undefined {
  if (problem !== undefined) return `retention: nothing was removed: ${problem}`;
  if (removed.objects === 0) return undefined;
  const checkpoints = removed.checkpoints.length === 0 ? '' : `checkpoints ${removed.checkpoints.join(', ')}, `;
  return `retention: removed ${checkpoints}${removed.objects} objects, ${(removed.bytes / 2 ** 20).toFixed(1)} MiB; everything after iteration ${floor} is kept`;
}
