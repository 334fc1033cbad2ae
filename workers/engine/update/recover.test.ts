import { afterAll, expect, it } from 'vitest';
import { keys } from '../../../core/records/keys.ts';
import { cliHome } from '../../../tests/cli.ts';
import { buildRun } from '../../../tests/run-builder.ts';
import { restoreTo } from './recover.ts';
import type { NamedState, RunState } from '../state/state.ts';

const cli = cliHome();
afterAll(() => cli.remove());

it('a fork that cannot replay its origin’s log gets a hint that leaves the origin unchanged', async () => {
  const { runId: origin, log } = await buildRun(await cli.store(), { done: 3, checkpoints: [] });
  await log.store.remove(keys.blob(origin, (await log.iteration(2)).batch.record.tensors));
  const atOne = { tag: await log.at(1), digestIn: (there: NamedState) => there.stateDigest } as unknown as RunState;
  const hintFor = async (runId: string) => {
    const ports = { runId, log, baseFolder: '', reproducible: true, say: () => {}, tick: () => {} };
    const error: unknown = await restoreTo(atOne, (await log.at(3)).stateDigest, 3, ports).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toMatchObject({ code: 'LogHole' });
    return (error as { hint: string }).hint;
  };
  expect(await hintFor(origin)).toContain(`petrel resume ${origin} --from 1 --accept`);
  const hint = await hintFor('fork-20260102-030405-abcd');
  expect(hint).toContain('then petrel resume fork-20260102-030405-abcd; ');
  expect(hint).toContain(`petrel fork ${origin} --from 1`);
  expect(hint).not.toContain(`resume ${origin}`);
});
