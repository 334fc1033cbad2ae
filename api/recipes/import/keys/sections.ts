/** Values that refer to a whole section: `reward_kwargs.overlong_buffer_cfg: ${reward_model.overlong_buffer}`. */
import type { Entry } from './entries.ts';

const mostCopies = 1000;

/** Puts a copy of the section's keys in the place of each such reference. */
export function withSections(all: readonly Entry[]): readonly Entry[] {
  const given = new Set(all.map(({ path }) => path));
  let copies = 0;
  return all.flatMap((entry) => {
    const target = typeof entry.value === 'string' ? /^\$\{([\w.]+)\}$/.exec(entry.value)?.[1] : undefined;
    if (target === undefined || given.has(target)) return [entry];
    const inside = all.filter(({ path }) => path.startsWith(`${target}.`));
    copies += inside.length;
    if (inside.length === 0 || copies > mostCopies) return [entry];
    return inside.map((one) => ({ ...one, path: entry.path + one.path.slice(target.length) }));
  });
}
