/** One piece of work after another, in the order in which they were asked for. One that fails does not keep the next from its turn. */
export type Alone = <T>(work: () => Promise<T>) => Promise<T>;

export function oneAtATime(): Alone {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const mine = last.then(work);
    last = mine.catch(() => undefined);
    return mine;
  };
}
