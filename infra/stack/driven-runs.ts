/**
 * The runs that this stack drives, as files under PETREL_HOME, which only its user can write. A run without such a file
 * is not driven, even if someone starts a workflow for it. If a run's workflow is lost with the Temporal server's
 * database, the file causes its restart. The state of a run is in its store, not here.
 */
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { RUN_KINDS } from '../../core/run-kinds.ts';
import { runIdPattern } from '../../core/ids.ts';
import { homeJsonNames, readHomeJson, writeHomeJson } from '../home-json.ts';
import { knownStores } from '../store/places.ts';
import { ownIdentity } from './process.ts';

const drivenRun = z.object({
  runId: z.string(),
  store: z.string(),
  kind: z.enum(RUN_KINDS),
  /**
   * The command that is about to queue the run again and start its workflow. The file stays until that process dies.
   */
  startedBy: z.object({ pid: z.int(), startTime: z.string() }).optional(),
});
export type DrivenRun = Readonly<z.infer<typeof drivenRun>>;

const folderOf = (home: string): string => join(home, 'driven');

export function noteDrivenRun(home: string, run: DrivenRun): void {
  mkdirSync(folderOf(home), { recursive: true, mode: 0o700 });
  writeHomeJson(join(folderOf(home), `${run.runId}.json`), run);
}

/**
 * As `noteDrivenRun`, before this process queues an ended run again. If the process dies after that, the run is
 * started.
 */
export function noteRunToStart(home: string, run: DrivenRun): void {
  const { pid, startTime } = ownIdentity();
  noteDrivenRun(home, { ...run, startedBy: { pid, startTime } });
}

export function forgetDrivenRun(home: string, runId: string): void {
  rmSync(join(folderOf(home), `${runId}.json`), { force: true });
}

/** True when a command of this home, or one of its schedules, started this run in this store. Throws as `drivenRuns`. */
export function drivesRun(home: string, { runId, store }: Pick<DrivenRun, 'runId' | 'store'>): boolean {
  return runIdPattern.test(runId) && readNote(home, `${runId}.json`)?.store === store;
}

/**
 * True for a store that a command of this home has named, and for the store of a run that this stack drives. Throws as
 * `drivenRuns`.
 */
export function servesStore(home: string, url: string): boolean {
  return knownStores(home).some((known) => known.url === url) || drivenRuns(home).some(({ store }) => store === url);
}

/** Files that are no such note are left out. Throws RetryableError `HomeUnreadable` when one cannot be read. */
export function drivenRuns(home: string): DrivenRun[] {
  return homeJsonNames(folderOf(home)).flatMap((name) => readNote(home, name) ?? []);
}

function readNote(home: string, name: string): DrivenRun | undefined {
  return drivenRun.safeParse(readHomeJson(join(folderOf(home), name))).data;
}
