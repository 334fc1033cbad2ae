/** Main threads may only transport data. The engine's own thread does all arithmetic. */
import { readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packageRoot } from '../infra/home.ts';

/**
 * Modules that are loaded together with a file because it imports values from them. Threads and programs that it starts
 * are not included.
 */
function loadedBy(entry: string): Set<string> {
  const seen = new Set<string>();
  const visit = (path: string) => {
    if (seen.has(path)) return;
    seen.add(path);
    const text = readFileSync(join(packageRoot(), path), 'utf8');
    for (const [, names = '', specifier = ''] of text.matchAll(
      /^(?:import|export)\s+(?!type\b)([^;'"]*?)(?:from\s+)?'(\.[^']+\.ts)'/gm,
    )) {
      if (/^\{\s*type\s[^,]*\}\s*$/.test(names)) continue;
      visit(posix.normalize(posix.join(dirname(path), specifier)));
    }
  };
  visit(entry);
  return seen;
}

/**
 * Losses, advantages, log-probs, digests of states, and the engine itself. Its progress counter and its version are
 * allowed, because they only read a number.
 */
const heavy =
  /^(native\/(?!ticks\.ts|binding\.ts|addon-file\.ts|package-root\.ts|arithmetic\.ts)|core\/rl\/(actor-total|aggregate|kl|policy-loss\/|advantages\/|distillation\/|prime\/|rollout-correction\/(?!options|threshold)|(?:sft|value|preference|reward-model)-loss|balance\/)|workers\/engine\/(update|losses|batch|host|state|generation|stages)\/)/;

describe('main threads', () => {
  it.each(['workers/main.ts', 'workers/control/main.ts'])('of %s load nothing that computes', (entry) => {
    expect([...loadedBy(entry)].filter((path) => heavy.test(path))).toEqual([]);
  });

  it('leave it to the engine thread, which does', () => {
    const loaded = [...loadedBy('workers/engine/process/thread.ts')].filter((path) => heavy.test(path));
    expect(loaded).toEqual(
      expect.arrayContaining([
        'workers/engine/update/update.ts',
        'workers/engine/batch/advantage.ts',
        'core/rl/actor-total.ts',
        'native/index.ts',
      ]),
    );
  });
});
