/**
 * Room for one dear thing at a time, such as a model in memory. Askers for the same thing share it; who asks for another
 * waits until it is out of use, so that two runs that share a worker do not drop each other's work for ever.
 */
export class SharedPlace<T> {
  #key: string | undefined;
  #thing: Promise<T> | undefined;
  #users = 0;
  readonly #waiting: (() => void)[] = [];

  /** `make` gets what was here before, to be closed; it is called once however many ask. */
  async use<R>(key: string, make: (before: T | undefined) => Promise<T>, work: (thing: T) => Promise<R>): Promise<R> {
    while (this.#key !== key && this.#users > 0) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    if (this.#key !== key) this.#replace(key, make);
    this.#users += 1;
    try {
      return await work(await (this.#thing as Promise<T>));
    } finally {
      this.#users -= 1;
      if (this.#users === 0) for (const wake of this.#waiting.splice(0)) wake();
    }
  }

  #replace(key: string, make: (before: T | undefined) => Promise<T>): void {
    const before = this.#thing;
    const thing = Promise.resolve(before?.catch(() => undefined)).then(make);
    this.#key = key;
    this.#thing = thing;
    // What could not be made is asked for anew.
    thing.catch(() => {
      if (this.#thing !== thing) return;
      this.#key = undefined;
      this.#thing = undefined;
    });
  }
}
