/** Peak memory of a stack: the sum of its processes' proportional set sizes, so that shared pages count once. */
import { readdirSync, readFileSync } from 'node:fs';
import { ancestors, processesWith } from '../../infra/stack/process.ts';

const everyMs = 250;

export class PeakPss {
  readonly #home: string;
  readonly #timer: NodeJS.Timeout;
  #bytes = 0;

  /** Looks at the processes with this PETREL_HOME, and at their descendants, several times a second. */
  constructor(home: string) {
    this.#home = home;
    this.#timer = setInterval(() => this.#look(), everyMs);
  }

  /** Stops looking. The largest sum so far. */
  end(): number {
    clearInterval(this.#timer);
    return this.#bytes;
  }

  #look(): void {
    const known = new Set(processesWith('PETREL_HOME', this.#home).map(({ pid }) => pid));
    const all = readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
      .filter((pid) => pid !== process.pid && (known.has(pid) || ancestors(pid).some((above) => known.has(above))));
    this.#bytes = Math.max(
      this.#bytes,
      all.reduce((sum, pid) => sum + pssOf(pid), 0),
    );
  }
}

/** 0 for a process that has ended. */
function pssOf(pid: number): number {
  try {
    return 1024 * Number(/^Pss:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1]);
  } catch {
    return 0;
  }
}
