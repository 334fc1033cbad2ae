/** The recipes of examples/10-algorithms that learn pairs, and the script that makes the pairs. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadRecipe } from '../api/recipes/recipe-file.ts';
import { runIssues } from '../core/recipe/index.ts';
import { packageRoot } from '../infra/home.ts';

const folder = join(packageRoot(), 'examples/10-algorithms');

describe('the examples of preference', () => {
  it.each(['dpo', 'rm', 'ppo-on-reward-model'])('%s.yaml can be run', (name) => {
    expect(runIssues(loadRecipe(join(folder, `${name}.yaml`), [], packageRoot()).recipe)).toEqual([]);
  });

  it('have pairs that their script makes, and no held-out sum is among the others', () => {
    const made = mkdtempSync(join(tmpdir(), 'petrel-pairs-'));
    try {
      execFileSync(process.execPath, [join(folder, 'preference/make-pairs.mjs'), made]);
      for (const name of ['pairs.jsonl', 'held-out.jsonl'])
        expect(readFileSync(join(made, name)).equals(readFileSync(join(folder, 'preference', name))), name).toBe(true);
    } finally {
      rmSync(made, { recursive: true });
    }
    const [pairs, heldOut] = ['pairs.jsonl', 'held-out.jsonl'].map((name) => rowsOf(name));
    const known = new Set(pairs?.map(({ prompt }) => prompt));
    expect(heldOut?.filter(({ prompt }) => known.has(prompt))).toEqual([]);
    expect(pairs?.filter(({ chosen, rejected }) => chosen === rejected)).toEqual([]);
  });
});

function rowsOf(name: string): { readonly prompt: string; readonly chosen: string; readonly rejected: string }[] {
  const lines = readFileSync(join(folder, 'preference', name), 'utf8')
    .trim()
    .split('\n');
  return lines.map((line) => JSON.parse(line) as ReturnType<typeof rowsOf>[number]);
}
