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
    const name = `${new Date().toISOString().replaceAll(':', '')}-${this.#writer}-${String(this.#chunks++).padStart(6, '0')}.jsonl`;
    try {
      await store.put(keys.log(runId, name), new TextEncoder().encode(taken.join('\n') + '\n'));
    } catch {
      lines.unshift(...taken);
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#subscription.unsubscribe();
    await Promise.all(this.#writing.values());
    await this.flush();
  }

  #take(runId: string, line: string): void {
    const lines = this.#lines.get(runId) ?? [];
    this.#lines.set(runId, lines);
    lines.push(line);
    if (lines.length > keptLines) lines.splice(0, lines.length - keptLines);
    else if (lines.length === flushLines) void this.flush();
  }
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
