/** Limits the parallel jobs of a worker: a number of slots, and a gate that lets one job run alone. */

/** `enter` resolves in the order of the calls. */
export class Slots {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  enter(): Promise<void> {
    if (this.#free > 0) {
      this.#free -= 1;
      return Promise.resolve();
    }
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  async hold<T>(work: () => Promise<T>): Promise<T> {
    await this.enter();
    try {
      return await work();
    } finally {
      this.leave();
    }
  }

  leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }
}

/** Many shared holders, or one exclusive one. A waiting exclusive request blocks later shared ones. */
export class Gate {
  #shared = 0;
  #exclusive = false;
  readonly #queue: { readonly exclusive: boolean; readonly go: () => void }[] = [];

  async run<T>(exclusive: boolean, work: () => Promise<T>): Promise<T> {
    await new Promise<void>((go) => {
      this.#queue.push({ exclusive, go });
      this.#admit();
    });
    try {
      return await work();
    } finally {
      if (exclusive) this.#exclusive = false;
      else this.#shared -= 1;
      this.#admit();
    }
  }

  #admit(): void {
    for (let next = this.#queue[0]; next !== undefined; next = this.#queue[0]) {
      if (this.#exclusive || (next.exclusive && this.#shared > 0)) return;
      this.#queue.shift();
      if (next.exclusive) this.#exclusive = true;
      else this.#shared += 1;
      next.go();
    }
  }
}
