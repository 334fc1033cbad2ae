/** Runs pieces of work one after another, in the order of the calls. The next one runs even when one fails. */
export type Alone = <T>(work: () => Promise<T>) => Promise<T>;

export function oneAtATime(): Alone {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const mine = last.then(work);
    last = mine.catch(() => undefined);
    return mine;
  };
}
