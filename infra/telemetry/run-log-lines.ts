/** Log lines of a run: any process sends them over NATS, and the control process collects them into the store. */
import type { Msg, NatsConnection, Subscription } from '@nats-io/nats-core';
import type { Store } from '../../core/ports/store.ts';
import { keys } from '../../core/records/keys.ts';
import { logLine, logNote, logsOf, logSubject, wireVersion } from '../../core/wire/messages.ts';
import type { LogLine } from '../../core/wire/messages.ts';
import { senderOf, shownName } from '../../core/wire/worker-identity.ts';
import type { WorkerEvent } from '../../core/wire/worker-event.ts';
import { controlName } from '../../core/wire/worker-identity.ts';
import type { WorkerPlace } from '../../core/wire/worker-identity.ts';

export type Say = (level: LogLine['level'], text: string, event?: WorkerEvent) => void;

/** Lines are sent at once and are lost when no process listens, so logs never delay work. */
export function lineWriter(nc: NatsConnection, runId: string, from: WorkerPlace): Say {
  return (level, text, event) => {
    if (nc.isClosed()) return;
    const note = { v: wireVersion, at: new Date().toISOString(), level, text, ...(event && { event }) };
    nc.publish(logSubject(runId, from), JSON.stringify(note));
  };
}

/**
 * A line with its source as users of this machine, whose instance is `own`, see it; undefined for other messages. Only
 * the control process says what became of workers.
 */
export function receivedLine(message: Pick<Msg, 'subject' | 'string'>, own: string): LogLine | undefined {
  const note = logNote.safeParse(parsed(message.string())).data;
  if (note === undefined) return undefined;
  const sender = senderOf(message.subject);
  const { event, ...line } = note;
  const isOfControl = sender.instance === own && sender.worker === controlName;
  return { ...line, source: shownName(sender, own), ...(isOfControl && event && { event }) };
}

const flushMs = 1_000;
const flushLines = 500;
/** Lines kept for a run whose store is unknown here or does not answer. */
const keptLines = 5_000;
/** Bytes kept for all runs. */
const keptBytes = 32 * 1024 * 1024;
/** A longer text is cut. */
const lineBytes = 8 * 1024;

/** Writes the lines of all runs that this control process drives into chunks under `runs/<id>/logs/`. */
export class LogCollector {
  readonly #writer: string;
  readonly #instance: string;
  readonly #lines = new Map<string, string[]>();
  /** Runs with a chunk that is being written. */
  readonly #writing = new Map<string, Promise<void>>();
  readonly #storeOf: (runId: string) => Store | undefined;
  readonly #subscription: Subscription;
  readonly #timer: NodeJS.Timeout;
  #chunks = 0;
  /** Bytes of all kept lines, including those of chunks that are being written. */
  #bytes = 0;

  /**
   * `instance`: of this machine. `queue`: the stack has several control processes, which all name this, and each line
   * goes to one of them.
   */
  constructor(
    nc: Pick<NatsConnection, 'subscribe'>,
    { writer, instance, queue }: { readonly writer: string; readonly instance: string; readonly queue?: string },
    storeOf: (runId: string) => Store | undefined,
  ) {
    this.#writer = writer;
    // With several machines each is named, because the readers of the line are on any of them.
    this.#instance = queue === undefined ? instance : '';
    this.#storeOf = storeOf;
    this.#subscription = nc.subscribe(logsOf('*'), {
      ...(queue !== undefined && { queue }),
      callback: (error, message) => {
        if (error === null) this.#take(message);
      },
    });
    this.#timer = setInterval(() => void this.flush(), flushMs);
  }

  /**
   * Writes the collected lines. The lines of a failing store are kept for the next flush; a slow store delays no other.
   */
  async flush(): Promise<void> {
    await Promise.all([...this.#lines.keys()].map((runId) => this.#flushRun(runId)));
  }

  /** Chunks of a run are written one after the other, so that their names are in the order of their lines. */
  #flushRun(runId: string): Promise<void> {
    const writing = this.#writing.get(runId) ?? this.#writeChunk(runId).finally(() => this.#writing.delete(runId));
    this.#writing.set(runId, writing);
    return writing;
  }

  async #writeChunk(runId: string): Promise<void> {
    const [store, lines] = [this.#storeOf(runId), this.#lines.get(runId) ?? []];
    if (store === undefined || lines.length === 0) return;
    const taken = lines.splice(0);
    this.#lines.delete(runId);
    const name = `${new Date().toISOString().replaceAll(':', '')}-${this.#writer}-${String(this.#chunks++).padStart(6, '0')}.jsonl`;
    try {
      await store.put(keys.log(runId, name), new TextEncoder().encode(`${taken.join('\n')}\n`));
      this.#bytes -= bytesOf(taken);
    } catch {
      this.#lines.set(runId, [...taken, ...(this.#lines.get(runId) ?? [])]);
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#subscription.unsubscribe();
    await Promise.all(this.#writing.values());
    await this.flush();
  }

  #take(message: Msg): void {
    const received = receivedLine(message, this.#instance);
    const [, runId] = message.subject.split('.');
    if (received === undefined || runId === undefined) return;
    const line = JSON.stringify(cut(received));
    const lines = this.#lines.get(runId) ?? [];
    this.#lines.set(runId, lines);
    lines.push(line);
    this.#bytes += Buffer.byteLength(line);
    if (lines.length > keptLines) this.#dropOldest(lines);
    while (this.#bytes > keptBytes && this.#longest().length > 0) this.#dropOldest(this.#longest());
    if (lines.length === flushLines) void this.flush();
  }

  #dropOldest(lines: string[]): void {
    this.#bytes -= Buffer.byteLength(lines.shift() ?? '');
  }

  /** Drops lines of the run that keeps most, so that a run with an unavailable store takes no space from others. */
  #longest(): string[] {
    return [...this.#lines.values()].reduce((most, lines) => (lines.length > most.length ? lines : most));
  }
}

/** The line, with its text cut to 8 KiB. */
function cut(line: LogLine): LogLine {
  if (Buffer.byteLength(line.text) <= lineBytes) return line;
  const text = Buffer.from(line.text)
    .toString('utf8', 0, lineBytes)
    .replace(/\uFFFD+$/, '');
  return { ...line, text: `${text} … cut` };
}

function bytesOf(lines: readonly string[]): number {
  return lines.reduce((sum, line) => sum + Buffer.byteLength(line), 0);
}

/** A stored chunk of lines, in the order of arrival. A chunk is named by the time of writing. */
export async function readLogChunk(store: Store, runId: string, chunk: string): Promise<LogLine[]> {
  const text = new TextDecoder().decode(await store.get(keys.log(runId, chunk)));
  return text
    .split('\n')
    .filter(Boolean)
    .flatMap((line) => parseLogLine(line) ?? []);
}

/** undefined when it is not a log line, or a line of another version. */
export function parseLogLine(text: string): LogLine | undefined {
  return logLine.safeParse(parsed(text)).data;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
