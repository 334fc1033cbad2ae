/**
 * The store as somebody who only watches a run reads it. When the store refuses for a moment (an expired token, a wrong
 * clock, a proxy), the run waits and goes on; so does everyone who follows it.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { PetrelError } from '../../core/errors.ts';
import type { Store } from '../../core/ports/store.ts';
import { RunLog } from '../../log/run/run-log.ts';
import type { FoundRun } from '../stores/find.ts';

export interface PatienceOptions {
  /** Ends the waiting with the store's last refusal. */
  readonly signal?: AbortSignal | undefined;
  /** Called once when the store begins to refuse, and once when it answers again. */
  readonly say: (line: string) => void;
  /** Time between two tries; by default a second. */
  readonly pauseMs?: number;
}

const refusals: ReadonlySet<string> = new Set(['StoreUnavailable', 'StoreDenied', 'StoreRefused']);

/** Is this the store's own refusal, which says nothing about the run? */
export const isStoreRefusal = (error: unknown): error is PetrelError =>
  error instanceof PetrelError && refusals.has(error.code);

/** The same run, read with patience. */
export function patientRun<Run extends Pick<FoundRun, 'log'>>(run: Run, options: PatienceOptions): Run {
  return { ...run, log: patientLog(run.log, options) };
}

/** The same log, read with patience. */
export const patientLog = ({ store, runId }: RunLog, options: PatienceOptions): RunLog =>
  new RunLog(patientStore(store, options), runId);

/** Repeats reads until the store answers. What writes or removes is not repeated. */
function patientStore(store: Store, options: PatienceOptions): Store {
  const insist = patience(options);
  return {
    url: store.url,
    place: store.place,
    get: (key, range) => insist(() => store.get(key, range)),
    head: (key) => insist(() => store.head(key)),
    stream: (key) => insist(() => store.stream(key)),
    list: (prefix) => insist(() => store.list(prefix)),
    children: (prefix) => insist(() => store.children(prefix)),
    settle: () => insist(() => store.settle()),
    create: (key, bytes, hold) => store.create(key, bytes, hold),
    put: (key, bytes) => store.put(key, bytes),
    remove: (key, only) => store.remove(key, only),
    localPath: (key) => store.localPath(key),
  };
}

/** Several reads may wait at once: each outage is said once. */
function patience({ signal, say, pauseMs = 1_000 }: PatienceOptions): <T>(read: () => Promise<T>) => Promise<T> {
  let isRefusing = false;
  return async (read) => {
    for (;;) {
      try {
        const found = await read();
        if (isRefusing) say('the store answers again');
        isRefusing = false;
        return found;
      } catch (error) {
        if (!isStoreRefusal(error) || signal?.aborted === true) throw error;
        if (!isRefusing) say(`the store refuses, the run waits for it, and so does this command: ${error.message}`);
        isRefusing = true;
        await delay(pauseMs, undefined, { signal }).catch(() => {});
      }
    }
  };
}
