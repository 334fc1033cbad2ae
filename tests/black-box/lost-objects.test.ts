/** `petrel ledger verify` excuses only objects that retention removed. */
import { readdirSync, readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { KeptStore } from './kept-store.ts';
import { PetrelUser } from './petrel.ts';

interface Verdict {
  readonly ok: boolean;
  readonly retired: number;
  readonly faults: readonly { readonly key: string }[];
}

describe('a run with lost objects', () => {
  const user = new PetrelUser();
  let store: KeptStore;
  beforeAll(() => {
    store = new KeptStore(user, '5ad3543');
  });
  afterAll(() => user.remove());

  const verdictOf = async (name: string): Promise<Verdict> =>
    (await user.petrel('ledger', 'verify', name, '--json')).json<Verdict>();

  const json = (name: string, path: string) =>
    JSON.parse(readFileSync(join(store.run(name), path), 'utf8')) as Record<string, unknown>;

  /** Blobs of an iteration: tensors of the batch, trajectories and scores. */
  function blobsOf(name: string, k: number): string[] {
    const { tensors, results } = json(name, `terms/1/${k}/batch.json`) as { tensors: string; results: string[] };
    const outputs = results.map((job) => json(name, `results/${job}.json`)['output'] as Record<string, unknown>);
    const digests = outputs.flatMap((output) => [output['trajectories'], output['scores']]);
    return [tensors, ...digests.filter((digest) => typeof digest === 'string')];
  }

  it('has faults when they are before its oldest checkpoint and retention removed nothing', async () => {
    const run = store.run('grpo-completed');
    for (const blob of blobsOf('grpo-completed', 1)) {
      const [there, away] = [join(run, 'blobs', blob), join(run, 'blobs', `${blob}-away`)];
      renameSync(there, away);
      const { ok, faults } = await verdictOf('grpo-completed');
      expect({ ok, keys: faults.map(({ key }) => key.split('/').at(-1)) }).toEqual({ ok: false, keys: [blob] });
      renameSync(away, there);
    }
  });

  it('has no faults when retention removed them', async () => {
    const blobs = readdirSync(join(store.run('grpo-trimmed'), 'blobs'));
    expect(blobsOf('grpo-trimmed', 1).filter((blob) => blobs.includes(blob))).toEqual([]);
    const verdict = await verdictOf('grpo-trimmed');
    expect(verdict).toMatchObject({ ok: true, faults: [] });
    expect(verdict.retired).toBeGreaterThan(5);
  });

  it('has faults when retention verified no checkpoint', async () => {
    const checkpoints = join(store.run('grpo-trimmed'), 'checkpoints');
    const oldest = readdirSync(checkpoints).sort()[0] ?? '';
    renameSync(join(checkpoints, oldest), join(store.run('grpo-trimmed'), oldest));
    expect(await verdictOf('grpo-trimmed')).toMatchObject({ ok: false });
  });
});
