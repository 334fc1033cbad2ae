/** What only a running stack knows: its workers, and the current stage of a run. Nothing here throws or waits long. */
import { EventEmitter, once } from 'node:events';
import type { NatsConnection } from '@nats-io/nats-core';
import { liveNote, liveSubject } from '../core/wire/messages.ts';
import type { LiveMessage, Presence } from '../core/wire/messages.ts';
import { liveQueryName } from '../core/wire/workflow.ts';
import type { LiveState } from '../core/wire/workflow.ts';
import { readMessage } from '../infra/nats/incoming.ts';
import { readStack } from '../infra/stack/index.ts';
import type { StackInfo } from '../infra/stack/index.ts';

const answerMs = 1_500;
/** A query costs the control process a task, so watchers query rarely and use notes in between. */
const drivenMs = 2_000;
/** A running stage sends a note about its progress twice a second. */
const noteMs = 600;

/** Whether a workflow drives the run, if that is known. */
export type Driven =
  | {
      readonly type: 'driven';
      readonly stage: string;
      /** The error that makes the control process repeat the same step. */
      readonly failing?: string;
    }
  | { readonly type: 'nobody' }
  | { readonly type: 'unknown' };

export interface LiveSource {
  readonly stack: StackInfo | undefined;
  workers(): Promise<readonly Presence[]>;
  driven(runId: string): Promise<Driven>;
  /**
   * The last note of a run that is listened to, if it is a few seconds old at most; else the next note, if it comes
   * soon.
   */
  note(runId: string): Promise<LiveMessage | undefined>;
  /** Listens to a run's notes from now on. */
  listen(runId: string): void;
  close(): Promise<void>;
}

export async function openLiveSource(home: string): Promise<LiveSource> {
  const stack = readStack(home);
  return stack === undefined ? nothingLive : new StackLive(stack, await connection(stack));
}

const nothingLive: LiveSource = {
  stack: undefined,
  workers: async () => [],
  driven: async () => ({ type: 'unknown' }),
  note: async () => undefined,
  listen: () => {},
  close: async () => {},
};

async function connection(stack: StackInfo): Promise<NatsConnection | undefined> {
  const { connectNats } = await import('../infra/nats/connection.ts');
  return connectNats(stack, 'cli', { timeoutMs: answerMs }).catch(() => undefined);
}

class StackLive implements LiveSource {
  readonly stack: StackInfo;
  readonly #nc: NatsConnection | undefined;
  readonly #notes = new Map<string, { readonly at: number; readonly note: LiveMessage }>();
  readonly #listening = new Set<string>();
  readonly #newNote = new EventEmitter();
  readonly #answers = new Map<string, { readonly at: number; readonly answer: Promise<Driven> }>();
  #temporal: ReturnType<typeof connectTemporal> | undefined;

  constructor(stack: StackInfo, nc: NatsConnection | undefined) {
    this.stack = stack;
    this.#nc = nc;
  }

  async workers(): Promise<readonly Presence[]> {
    const nc = this.#nc;
    if (nc === undefined) return [];
    const { listWorkers } = await import('../infra/nats/jobs/presence.ts');
    return within(listWorkers(nc), []);
  }

  driven(runId: string): Promise<Driven> {
    const known = this.#answers.get(runId);
    if (known !== undefined && performance.now() - known.at < drivenMs) return known.answer;
    const answer = this.#ask(runId);
    this.#answers.set(runId, { at: performance.now(), answer });
    return answer;
  }

  async #ask(runId: string): Promise<Driven> {
    this.#temporal ??= connectTemporal(this.stack);
    const client = await this.#temporal;
    if (client === undefined) return { type: 'unknown' };
    try {
      const handle = client.workflow.getHandle(runId);
      return await client.withDeadline(Date.now() + answerMs, async () => {
        const [{ stage }, { raw }] = await Promise.all([handle.query<LiveState>(liveQueryName), handle.describe()]);
        const failing = raw.pendingActivities?.find(({ lastFailure }) => lastFailure?.applicationFailureInfo)
          ?.lastFailure?.message;
        return { type: 'driven', stage, ...(failing ? { failing } : {}) };
      });
    } catch (error) {
      return error instanceof Error && error.name === 'WorkflowNotFoundError'
        ? { type: 'nobody' }
        : { type: 'unknown' };
    }
  }

  async note(runId: string): Promise<LiveMessage | undefined> {
    const newest = this.#notes.get(runId);
    if (newest !== undefined && performance.now() - newest.at < drivenMs) return newest.note;
    if (this.#nc === undefined) return undefined;
    await once(this.#newNote, runId, { signal: AbortSignal.timeout(noteMs) }).catch(() => {});
    return this.#notes.get(runId)?.note;
  }

  listen(runId: string): void {
    if (this.#listening.has(runId)) return;
    this.#listening.add(runId);
    this.#nc?.subscribe(liveSubject(runId), {
      callback: (error, message) => {
        const note = error === null ? readMessage(message, liveNote) : undefined;
        if (note === undefined) return;
        this.#notes.set(runId, { at: performance.now(), note });
        this.#newNote.emit(runId);
      },
    });
  }

  async close(): Promise<void> {
    await Promise.all([this.#nc?.close(), this.#temporal?.then((client) => client?.connection.close())]);
  }
}

async function connectTemporal(stack: StackInfo) {
  const { connectTemporalClient } = await import('../infra/temporal/connection.ts');
  return connectTemporalClient(stack, answerMs).catch(() => undefined);
}

async function within<T>(work: Promise<T>, otherwise: T): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<T>((resolve) => (timer = setTimeout(resolve, answerMs, otherwise)));
  return Promise.race([work.catch(() => otherwise), late]).finally(() => clearTimeout(timer));
}
