import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { keys } from '../../../core/records/keys.ts';
import { openFolderStore } from '../../../infra/store/folder.ts';
import { decoder, trainerOf } from '../../../native/testing/decoders.ts';
import { NativePolicy } from '../engines/native/policy.ts';
import { EngineHost } from './host.ts';
import type { JobContext } from '../job/context.ts';
import { RunState } from '../state/state.ts';

it('saves a state for each run that has it: a fork’s base while its origin’s checkpoint is still being written', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'petrel-host-'));
  const trainer = trainerOf(decoder(), 1, { trainable: true });
  try {
    const store = await openFolderStore(folder);
    await store.create(keys.run('origin'), new Uint8Array()); // an empty store would count as an unmounted one
    const state = new RunState({ actor: new NativePolicy(trainer) }, 'm'.repeat(64));
    await state.seal();
    const host = new EngineHost({
      threads: 1,
      cache: join(folder, 'cache'),
      onSaved: () => {},
      ticks: new Int32Array(new SharedArrayBuffer(4)),
    });
    const contextOf = (runId: string) =>
      ({ runId, store: pathToFileURL(folder).href, at: { term: 1, iteration: 3 } }) as unknown as JobContext;
    const saved = await Promise.all(
      ['origin', 'origin', 'fork'].map(async (runId) => (await host.checkpoint(state, contextOf(runId), 3)).written),
    );
    const manifests = saved.map(({ manifest }) => manifest ?? '');
    expect(new Set(manifests).size).toBe(2);
    for (const key of manifests) expect(await store.head(key)).toBeGreaterThan(0);
    expect(manifests[2]).toContain('runs/fork/');
  } finally {
    trainer.close();
    rmSync(folder, { recursive: true });
  }
});
