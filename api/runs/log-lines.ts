/** Log lines of a run, stored and live, each returned once. */
import type { Store } from '../../core/ports/store.ts';
import { keys } from '../../core/records/keys.ts';
import { logsOf } from '../../core/wire/messages.ts';
import type { LogLine } from '../../core/wire/messages.ts';
import { instanceName } from '../../infra/stack/identity.ts';
import { readStack } from '../../infra/stack/index.ts';
import { readLogChunk, receivedLine } from '../../infra/telemetry/run-log-lines.ts';

/** Reads the stored lines, chunk by chunk, and leaves out those that were returned before. */
export class LogReader {
  readonly #store: Store;
  readonly #runId: string;
  readonly #seenChunks = new Set<string>();
  /** Lines that were returned live and will also appear in the store: how often. */
  readonly #early = new Map<string, number>();
  /** Lines that were read from the store and may still arrive live. */
  readonly #late = new Map<string, number>();

  constructor(store: Store, runId: string) {
    this.#store = store;
    this.#runId = runId;
  }

  /** The newest stored lines, ordered by time. All older lines count as read. */
  async newest(count: number): Promise<LogLine[]> {
    const chunks = await this.#store.children(keys.logs(this.#runId));
    let lines: LogLine[] = [];
    for (const chunk of chunks.reverse()) {
      this.#seenChunks.add(chunk);
      if (lines.length < count) lines = [...(await this.#read(chunk)), ...lines];
    }
    return inOrder(lines).slice(-count);
  }

  /** Stored lines that were not returned yet. */
  async more(): Promise<LogLine[]> {
    const lines: LogLine[] = [];
    for (const chunk of await this.#store.children(keys.logs(this.#runId))) {
      if (this.#seenChunks.has(chunk)) continue;
      this.#seenChunks.add(chunk);
      lines.push(...(await this.#read(chunk)));
    }
    return inOrder(lines);
  }

  /** A line that arrived live; undefined when it was already read from the store. */
  live(line: LogLine): LogLine | undefined {
    if (take(this.#late, keyOf(line))) return undefined;
    add(this.#early, keyOf(line));
    return line;
  }

  async #read(chunk: string): Promise<LogLine[]> {
    const lines = await readLogChunk(this.#store, this.#runId, chunk);
    return lines.filter((line) => {
      if (take(this.#early, keyOf(line))) return false;
      add(this.#late, keyOf(line));
      return true;
    });
  }
}

/** A live line is at most seconds late, so older lines can be forgotten. */
const remembered = 10_000;

function add(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
  if (counts.size <= remembered) return;
  const oldest = counts.keys().next().value;
  if (oldest !== undefined) counts.delete(oldest);
}

function take(counts: Map<string, number>, key: string): boolean {
  const count = counts.get(key) ?? 0;
  if (count > 1) counts.set(key, count - 1);
  else counts.delete(key);
  return count > 0;
}

const keyOf = ({ at, level, source, text }: LogLine): string => JSON.stringify([at, level, source, text]);

const inOrder = (lines: LogLine[]): LogLine[] => lines.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));

/** Calls `onLine` with each line when it is written, while the stack is up. Resolves with a function that ends this. */
export async function listenToLog(
  home: string,
  runId: string,
  onLine: (line: LogLine) => void,
): Promise<() => Promise<void>> {
  const stack = readStack(home);
  if (stack === undefined) return async () => {};
  const { connectNats } = await import('../../infra/nats/connection.ts');
  const nc = await connectNats(stack, 'logs', { timeoutMs: 2_000 }).catch(() => undefined);
  const own = instanceName(home);
  nc?.subscribe(logsOf(runId), {
    callback: (error, message) => {
      const line = error === null ? receivedLine(message, own) : undefined;
      if (line !== undefined) onLine(line);
    },
  });
  return async () => nc?.close();
}
