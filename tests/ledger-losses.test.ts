/**
 * Hides each object of a real run from the verifier in turn; the verifier must report it as missing. The runs are those
 * of the kept store, so no server is needed. Only runs with one term are used, because no log names the objects that a
 * redo abandoned.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { verifyLedger } from '../api/ledger/verify.ts';
import type { Store } from '../core/ports/store.ts';
import { packageRoot } from '../infra/home.ts';
import { openStore } from '../infra/store/open.ts';

/** Objects that nothing needs again, so that nothing proves their loss. */
const unprovable: Readonly<Record<string, RegExp>> = {
  'lines for people': /\/logs\//,
  'results of jobs whose outcome is a record': /\/results\/(open|update|weights|checkpoint)-/,
  'weights for rollout workers, which any trainer writes again': /\/weights\//,
  'pins of forks that have begun': /\/pins\//,
};

/** The last entry of a dense sequence: without it, the sequence ends one entry earlier. */
function lastOf(keys: readonly string[], folder: string): string | undefined {
  const number = (key: string) => Number(/(\d+)\.json$/.exec(key)?.[1]);
  return keys.filter((key) => key.includes(folder)).sort((a, b) => number(b) - number(a))[0];
}

/**
 * A writer that dies before the manifest leaves the same objects, and the run replays. Retention records the ones that
 * it has verified.
 */
const isEarlyCheckpoint = (key: string, run: string): boolean =>
  /\/checkpoints\/[1-5]-/.test(key) && run !== 'grpo-trimmed';

/** A store that hides one object. */
function without(store: Store, hidden: string): Store {
  const folder = hidden.slice(0, hidden.lastIndexOf('/') + 1);
  return new Proxy(store, {
    get(target, name) {
      if (name === 'get' || name === 'stream' || name === 'head')
        return async (key: string, ...more: []) => (key === hidden ? undefined : target[name](key, ...more));
      if (name === 'children')
        return async (prefix: string) =>
          (await target.children(prefix)).filter((child) => prefix !== folder || prefix + child !== hidden);
      if (name === 'list') return async (prefix: string) => (await target.list(prefix)).filter((key) => key !== hidden);
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

describe('the verifier misses', () => {
  const folder = mkdtempSync(join(tmpdir(), 'petrel-losses-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  let store: Store;
  let all: string[];
  beforeAll(async () => {
    execFileSync('tar', ['-C', folder, '-xzf', join(packageRoot(), 'tests/kept-stores/5ad3543.tar.gz')]);
    store = await openStore(join(folder, 'store'));
    all = await store.list('runs/');
  });

  async function keysOf(name: string): Promise<{ runId: string; keys: string[] }> {
    const runId = all.map((key) => key.split('/')[1] ?? '').find((id) => id.startsWith(`${name}-2`));
    if (runId === undefined) throw new Error(`no run ${name} in ${store.url}`);
    const keys = all.filter((key) => key.startsWith(`runs/${runId}/`));
    const last = ['status', 'retention'].map((folder) => lastOf(keys, `/${folder}/`));
    const passed = (key: string) => last.includes(key) || isEarlyCheckpoint(key, name);
    const provable = (key: string) => !Object.values(unprovable).some((pattern) => pattern.test(key));
    return { runId, keys: keys.filter((key) => provable(key) && !passed(key)) };
  }

  it.each(['grpo-completed', 'grpo-fork', 'sft-completed', 'plain-completed', 'grpo-trimmed'])(
    'each object of %s',
    async (name) => {
      const { runId, keys } = await keysOf(name);
      expect((await verifyLedger(store, runId, { deep: true })).faults).toEqual([]);
      const missed: string[] = [];
      for (const key of keys) {
        const { faults } = await verifyLedger(without(store, key), runId, { deep: true });
        if (faults.length === 0) missed.push(key);
      }
      expect(keys.length).toBeGreaterThan(30);
      expect(missed).toEqual([]);
    },
  );
});
