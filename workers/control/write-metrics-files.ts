/** Writes the metrics files of runs whose recipe has `trainer.logger: file`, from their committed iterations. */
import { setTimeout as delay } from 'node:timers/promises';
import { errorToJson } from '../../core/errors.ts';
import type { RunId } from '../../core/ids.ts';
import { endedStates } from '../../core/run-states.ts';
import type { Store } from '../../core/ports/store.ts';
import { isPaidByRequest } from '../../infra/store/places.ts';
import { RunLog } from '../../log/run/run-log.ts';
import { writeMetricsFile } from '../../infra/telemetry/metrics-file.ts';
import { forgetMetricsFile, metricsNotes, writeNote } from '../../infra/telemetry/metrics-notes.ts';
import type { MetricsNote } from '../../infra/telemetry/metrics-notes.ts';

const everyMs = 1_000;
/** A store that charges for requests is read in one of this many rounds. */
const paidRounds = 12;

export interface MetricsFilesPorts {
  readonly home: string;
  readonly openStore: (url: string) => Promise<Store>;
  readonly log: (line: string) => void;
}

/**
 * Writes the files until the signal is aborted. A file that cannot be written affects nothing else, and is tried again.
 */
export async function writeMetricsFiles(ports: MetricsFilesPorts, signal: AbortSignal): Promise<void> {
  const problems = new Map<string, string>();
  /** Logs a problem once, until it is another one or gone. */
  const attempt = async <T>(where: string, work: () => T | Promise<T>): Promise<T | undefined> => {
    try {
      const done = await work();
      problems.delete(where);
      return done;
    } catch (error) {
      const { message } = errorToJson(error);
      if (problems.get(where) !== message) ports.log(`${where}: ${message}`);
      problems.set(where, message);
      return undefined;
    }
  };
  for (let round = 0; !signal.aborted; round++) {
    for (const note of (await attempt('metrics files', () => metricsNotes(ports.home))) ?? []) {
      if (isPaidByRequest(note.store) && round % paidRounds !== 0) continue;
      await attempt(note.path, () => writeOne(note, ports));
    }
    await delay(everyMs, undefined, { signal }).catch(() => undefined);
  }
}

async function writeOne(note: MetricsNote, { home, openStore }: MetricsFilesPorts): Promise<void> {
  const log = new RunLog(await openStore(note.store), note.runId as RunId);
  const isComplete = await writeMetricsFile(note.path, log);
  if (!isComplete) return;
  forgetMetricsFile(home, note.runId);
  // A resume may have written the note again in between.
  const state = (await log.status.newest())?.state;
  if (state !== undefined && !endedStates.has(state)) writeNote(home, note);
}
