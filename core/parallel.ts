/** Runs work on a sequence with a bounded number of items in progress. */

/** Results in the order of the inputs; at most `atOnce` inputs are in progress or finished and not yet consumed. */
export async function* inOrder<T, R>(
  inputs: Iterable<T>,
  atOnce: number,
  work: (input: T) => Promise<R>,
): AsyncGenerator<R> {
  const underWay: Promise<R>[] = [];
  const start = (input: T): void => {
    const result = work(input);
    result.catch(() => {}); // thrown when the consumer reaches it, or not at all when an earlier one failed
    underWay.push(result);
  };
  try {
    for (const input of inputs) {
      start(input);
      if (underWay.length >= atOnce) yield await (underWay.shift() as Promise<R>);
    }
    while (underWay.length > 0) yield await (underWay.shift() as Promise<R>);
  } finally {
    await Promise.allSettled(underWay);
  }
}

/**
 * Runs all items, in any order. After the first failure no new item starts; throws when the running ones have ended.
 */
export async function eachOf<T>(
  inputs: AsyncIterable<T> | Iterable<T>,
  atOnce: number,
  work: (input: T) => Promise<void>,
): Promise<void> {
  const underWay = new Set<Promise<void>>();
  let failed: { readonly error: unknown } | undefined;
  try {
    for await (const input of inputs) {
      const one = work(input)
        .catch((error: unknown) => void (failed ??= { error }))
        .finally(() => underWay.delete(one));
      underWay.add(one);
      if (underWay.size >= atOnce) await Promise.race(underWay);
      if (failed !== undefined) break;
    }
  } finally {
    await Promise.all(underWay);
  }
  if (failed !== undefined) throw failed.error;
}

/** Waits for works that run at the same time. Of several failures it throws that of the first work in the list. */
export async function allOf<Works extends readonly unknown[] | []>(
  works: Works,
): Promise<{ -readonly [I in keyof Works]: Awaited<Works[I]> }> {
  await Promise.allSettled(works);
  return Promise.all(works);
}

/** What several streams give, as it comes. Who stops reading ends all of them, and so does the failure of one. */
export async function* merged<T>(streams: readonly AsyncIterable<T>[]): AsyncGenerator<T> {
  const iterators = streams.map((stream) => stream[Symbol.asyncIterator]());
  const next = (of: AsyncIterator<T>) => {
    const coming = of.next().then((result) => ({ of, result }));
    coming.catch(() => {}); // it may fail while the reader works
    return coming;
  };
  const waiting = new Map(iterators.map((one) => [one, next(one)]));
  try {
    while (waiting.size > 0) {
      const { of, result } = await Promise.race(waiting.values());
      waiting.delete(of);
      if (result.done === true) continue;
      waiting.set(of, next(of)); // behind the others, which have their turn
      yield result.value;
    }
  } finally {
    await Promise.allSettled(iterators.map((one) => one.return?.()));
  }
}
