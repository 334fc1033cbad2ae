/** Log lines of a run: from any process over NATS, collected by the control process into the store. */
import type { NatsConnection, Subscription } from '@nats-io/nats-core';
import type { Store } from '../../core/ports.ts';
import { keys } from '../../core/records/keys.ts';
import { logLine, logSubject, wireVersion } from '../../core/wire/messages.ts';
import type { LogLine } from '../../core/wire/messages.ts';

export type Say = (level: LogLine['level'], text: string) => void;

/** Lines go out at once and are lost when nobody listens: logs never hold up work. */
export function lineWriter(nc: NatsConnection, runId: string, source: string): Say {
  return (level, text) => {
    if (nc.isClosed()) return;
    const line: LogLine = { v: wireVersion, at: new Date().toISOString(), level, source, text };
    nc.publish(logSubject(runId), JSON.stringify(line));
  };
}

const flushMs = 1_000;
const flushLines = 500;
/** Lines kept of a run whose store is not known here, or does not answer. */
const keptLines = 5_000;
/** Bytes kept of all runs. */
const keptBytes = 32 * 1024 * 1024;
/** A longer line is cut. */
const lineBytes = 8 * 1024;

/** Writes the lines of all runs that this control process drives into chunks under `runs/<id>/logs/`. */
export class LogCollector {
  readonly #writer: string;
  readonly #lines = new Map<string, string[]>();
  /** Runs of which a chunk is being written. */
  readonly #writing = new Map<string, Promise<void>>();
  readonly #storeOf: (runId: string) => Store | undefined;
  readonly #subscription: Subscription;
  readonly #timer: NodeJS.Timeout;
  #chunks = 0;
  /** Of all lines that are kept, those of a chunk that is being written too. */
  #bytes = 0;

  constructor(nc: Pick<NatsConnection, 'subscribe'>, writer: string, storeOf: (runId: string) => Store | undefined) {
    this.#writer = writer;
    this.#storeOf = storeOf;
    this.#subscription = nc.subscribe(logSubject('*'), {
      callback: (error, message) => {
        if (error === null) this.#take(message.subject.slice(logSubject('').length), message.string());
      },
    });
    this.#timer = setInterval(() => void this.flush(), flushMs);
  }

  /** Writes what is there. A store that fails keeps its lines for the next flush; one that is slow keeps up no other. */
  async flush(): Promise<void> {
    await Promise.all([...this.#lines.keys()].map((runId) => this.#flushRun(runId)));
  }

  /** One chunk after the other: their names are in the order of their lines. */
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

  #take(runId: string, text: string): void {
    const line = cut(text);
    if (line === undefined) return;
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

  /** Of the run that keeps most: one whose store is away takes no room from the others. */
  #longest(): string[] {
    return [...this.#lines.values()].reduce((most, lines) => (lines.length > most.length ? lines : most));
  }
}

/** The line with its text cut to 8 KiB; undefined for a long line that is no log line. */
function cut(line: string): string | undefined {
  if (Buffer.byteLength(line) <= lineBytes) return line;
  const parsed = parseLogLine(line);
  if (parsed === undefined) return undefined;
  const text = Buffer.from(parsed.text)
    .toString('utf8', 0, lineBytes)
    .replace(/\uFFFD+$/, '');
  return JSON.stringify({ ...parsed, source: parsed.source.slice(0, 100), text: `${text} … cut` });
}

function bytesOf(lines: readonly string[]): number {
  return lines.reduce((sum, line) => sum + Buffer.byteLength(line), 0);
}

/** A stored chunk of lines, in the order they came. Chunks are named by the moment of their writing. */
export async function readLogChunk(store: Store, runId: string, chunk: string): Promise<LogLine[]> {
  const text = new TextDecoder().decode(await store.get(keys.log(runId, chunk)));
  return text
    .split('\n')
    .filter(Boolean)
    .flatMap((line) => parseLogLine(line) ?? []);
}

/** undefined when it is no log line, or one of another version. */
export function parseLogLine(text: string): LogLine | undefined {
  try {
    return logLine.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
