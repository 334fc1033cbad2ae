/**
 * How fast a worker decodes: tokens per second of decoding, over its last rollout jobs. Jobs share the decoding steps,
 * so a second in which several jobs decode counts once, and a job is counted when those that run beside it have ended,
 * too: until then nobody knows how many tokens of these were decoded in its time. A job's tokens count as decoded
 * evenly.
 */

/** The decoding of one job. Times in seconds. */
export interface DecodedSpan {
  readonly from: number;
  readonly to: number;
  /** Decoded by this worker. */
  readonly tokens: number;
}

/** The number of jobs that a worker runs at once. */
const jobsInWindow = 8;
/** The number of jobs that are kept, because they may overlap the ones in the window. */
const jobsKept = 3 * jobsInWindow;

export class DecodingRate {
  readonly #running = new Set<{ readonly from: number }>();
  #ended: DecodedSpan[] = [];

  /** A job begins. The returned function is called once at its end, with what it decoded; without it when it failed. */
  begin(from: number): (decoded?: DecodedSpan) => void {
    const job = { from };
    this.#running.add(job);
    return (decoded) => {
      this.#running.delete(job);
      if (decoded !== undefined && decoded.to > decoded.from) this.#ended = [...this.#ended, decoded].slice(-jobsKept);
    };
  }

  /** Undefined before the first job is counted. */
  get tokensPerSecond(): number | undefined {
    const open = Math.min(...[...this.#running].map(({ from }) => from));
    const counted = this.#ended.filter(({ to }) => to <= open).slice(-jobsInWindow);
    if (counted.length === 0) return undefined;
    const window = {
      from: Math.min(...counted.map(({ from }) => from)),
      to: Math.max(...counted.map(({ to }) => to)),
    };
    const inside = this.#ended.map((span) => within(span, window)).filter(({ from, to }) => to > from);
    return inside.reduce((sum, { tokens }) => sum + tokens, 0) / secondsIn(inside);
  }
}

/** The part of a span that lies in the window. */
function within({ from, to, tokens }: DecodedSpan, window: Omit<DecodedSpan, 'tokens'>): DecodedSpan {
  const [begin, end] = [Math.max(from, window.from), Math.min(to, window.to)];
  return { from: begin, to: end, tokens: (tokens * (end - begin)) / (to - from) };
}

/** Seconds that at least one span covers. */
function secondsIn(spans: readonly DecodedSpan[]): number {
  let seconds = 0;
  let covered = Number.NEGATIVE_INFINITY;
  for (const { from, to } of [...spans].sort((a, b) => a.from - b.from)) {
    seconds += Math.max(0, to - Math.max(from, covered));
    covered = Math.max(covered, to);
  }
  return seconds;
}
