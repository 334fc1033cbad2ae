/**
 * What machines did for which run, as the control process sees it in its answers to claims. It is written down every
 * ten seconds; what a process that dies has not written counts as idle.
 */
import { randomBytes } from 'node:crypto';
import { errorToJson } from '../../core/errors.ts';
import type { UsageRecord } from '../../core/fleet/records.ts';
import type { FleetLog } from '../../log/fleet/fleet-log.ts';

export type UsedSpan = UsageRecord['spans'][number];

const writeEveryMs = 10_000;
/** A record has at most so many. */
const mostSpans = 5_000;

export class UsageBook {
  readonly #open: () => Promise<FleetLog | undefined>;
  readonly #log: (line: string) => void;
  readonly #name = randomBytes(6).toString('hex');
  #waiting: UsedSpan[] = [];
  #written = 0;
  #writing: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;

  /** `open`: the fleet of this stack; undefined when it has none, and then nothing is kept. */
  constructor(open: () => Promise<FleetLog | undefined>, log: (line: string) => void) {
    this.#open = open;
    this.#log = log;
  }

  note(span: UsedSpan): void {
    if (!(span.to > span.from)) return;
    this.#waiting.push(span);
    this.#timer ??= setTimeout(() => void this.write(), writeEveryMs);
  }

  /**
   * Writes the book: when this resolves, what was noted before is written down, or kept for the next time. Never
   * rejects.
   */
  write(): Promise<void> {
    this.#writing = this.#writing.then(() => this.#write(new Date()));
    return this.#writing;
  }

  async #write(now: Date): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const spans = this.#waiting.splice(0, mostSpans);
    if (spans.length === 0) return;
    try {
      const fleet = await this.#open();
      if (fleet !== undefined) await fleet.noteUsage(`${this.#name}-${++this.#written}`, spans, now);
    } catch (error) {
      this.#log(`what machines did could not be written down: ${errorToJson(error).message}`);
      this.#waiting.unshift(...spans);
    }
    if (this.#waiting.length > 0) this.#timer ??= setTimeout(() => void this.write(), writeEveryMs);
  }
}
