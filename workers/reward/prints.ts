/** The output of scorers goes to their run's log, with a limit, because a print in a loop must not fill the store. */

/** Lines kept in a burst, and how many more each second. */
const burst = 200;
const linesPerSecond = 20;

/** One run's share of the log. */
export class PrintLimit {
  readonly #write: (text: string) => void;
  readonly #now: () => number;
  #room = burst;
  #filledAt: number;
  #leftOut = 0;

  /** `now` in milliseconds. */
  constructor(write: (text: string) => void, now: () => number = () => performance.now()) {
    this.#write = write;
    this.#now = now;
    this.#filledAt = now();
  }

  print(line: string): void {
    this.#fill();
    if (this.#room < 1) {
      this.#leftOut += 1;
      return;
    }
    this.flush();
    this.#room -= 1;
    this.#write(line);
  }

  /** Reports how many lines were dropped since the last kept one. */
  flush(): void {
    if (this.#leftOut === 0) return;
    const lines = `${this.#leftOut} ${this.#leftOut === 1 ? 'line was' : 'lines were'}`;
    this.#leftOut = 0;
    this.#write(`scorer: ${lines} left out here; at most ${linesPerSecond} a second are kept`);
  }

  #fill(): void {
    const now = this.#now();
    this.#room = Math.min(burst, this.#room + ((now - this.#filledAt) / 1000) * linesPerSecond);
    this.#filledAt = now;
  }
}
