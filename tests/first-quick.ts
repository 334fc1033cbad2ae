import { it } from 'vitest';

/**
 * Does what `it.each` does, but only the first case runs in `npm test`, and the others in `npm run test:long`; for
 * cases that differ in what is damaged or killed, and not in what petrel does about it.
 */
export function firstQuick<T extends [unknown, ...unknown[]]>(cases: readonly T[]) {
  return (title: string, test: (...one: T) => Promise<void>): void => {
    it.each(cases.slice(0, 1))(title, (...one) => test(...(one as T)));
    it.each(cases.slice(1))(title, { tags: ['long'] }, (...one) => test(...(one as T)));
  };
}
