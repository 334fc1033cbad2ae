/**
 * A place for one expensive resource at a time, such as a model in memory. Requests for the same resource share it. A
 * request for another one waits until it is out of use, so that two runs on one worker do not drop each other's work in
 * turn.
 */
export class SharedPlace<T> {
  #key: string | undefined;
  #thing: Promise<T> | undefined;
  #users = 0;
  readonly #waiting: (() => void)[] = [];

  /** `make` gets the previous resource and must close it. It is called once, however many requests wait. */
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

  /** Is something in the place that nobody uses? */
  get isIdle(): boolean {
    return this.#thing !== undefined && this.#users === 0;
  }

  /** Takes the resource out once nobody uses it. Undefined: there is none, or another one has come meanwhile. */
  async taken(): Promise<T | undefined> {
    const held = this.#thing;
    while (this.#thing === held && this.#users > 0) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    if (held === undefined || this.#thing !== held) return undefined;
    this.#clear();
    return held;
  }

  /** The resource is gone. The next request makes a new one. */
  forget(thing: T): void {
    const held = this.#thing;
    held?.then(
      (one) => void (one === thing && this.#thing === held && this.#clear()),
      () => {},
    );
  }

  #clear(): void {
    this.#key = undefined;
    this.#thing = undefined;
  }

  #replace(key: string, make: (before: T | undefined) => Promise<T>): void {
    const before = this.#thing;
    const thing = Promise.resolve(before?.catch(() => undefined)).then(make);
    this.#key = key;
    this.#thing = thing;
    // A failed creation is tried again by the next request.
    thing.catch(() => {
      if (this.#thing === thing) this.#clear();
    });
  }
}
