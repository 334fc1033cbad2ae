import type { Desk } from './host-types.ts';

/** A time limit that stands still while the scorer waits for an answer of the endpoint. */
export class TimeLimit {
  readonly #desk: Desk | undefined;
  readonly #reached: () => void;
  #leftMs: number;
  #since = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(ms: number, reached: () => void, desk: Desk | undefined) {
    this.#leftMs = ms;
    this.#reached = reached;
    this.#desk = desk;
    if (desk !== undefined) desk.onChange = () => this.#change();
    this.#change();
  }

  end(): void {
    this.#stop();
    if (this.#desk !== undefined) this.#desk.onChange = () => {};
  }

  #change(): void {
    if (this.#desk?.isBusy === true) return this.#stop();
    if (this.#timer !== undefined) return;
    this.#since = performance.now();
    this.#timer = setTimeout(this.#reached, this.#leftMs);
  }

  #stop(): void {
    if (this.#timer === undefined) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#leftMs = Math.max(0, this.#leftMs - (performance.now() - this.#since));
  }
}
