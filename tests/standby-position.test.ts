/** The position where a term begins with the state of a standby has two states: those who read it must not mix them. */
import { afterAll, expect, it } from 'vitest';
import { recoverHead } from '../activities/term/recover-head.ts';
import type { ActivityPorts } from '../activities/ports/index.ts';
import type { RunContexts } from '../activities/term/run-context.ts';
import { originAt } from '../api/runs/fork.ts';
import { parseRecipe } from '../core/recipe/index.ts';
import { exampleProfile } from '../core/records/examples.test-support.ts';
import { bestCheckpoint } from '../log/run/best-checkpoint.ts';
import { openNextTerm } from '../log/run/terms.ts';
import type { RunLog } from '../log/run/run-log.ts';
import { cliHome } from './cli.ts';
import { builtOwner, buildRun, builtState, saveBuilt } from './run-builder.ts';
import { stateDigests } from './state-digests.ts';

const home = cliHome();
afterAll(() => home.remove());
let runs = 0;

/** A state that no iteration of the built run has. */
const own = 9;

/** Iteration 4 is the last one, validated and saved in term 1; term 2 begins there with the state of a standby. */
async function begunAtFour(): Promise<RunLog> {
  const options = { name: `toy-${runs++}`, done: 4, checkpoints: [2, 4], evaluations: [4], best: 'max' } as const;
  const { log } = await buildRun(await home.store(), options);
  const { stateDigest, weightsDigest } = stateDigests(builtState(own));
  await openNextTerm(log, {
    after: 1,
    engine: { profile: exampleProfile, from: 4 },
    standby: { result: 'update-1', stateDigest, components: { actor: { stateDigest, weightsDigest } } },
    skipDraws: false,
    owner: builtOwner,
    reason: 'standby',
    writer: { process: 'test', at: '2026-02-03T04:05:06Z' },
  });
  return log;
}

it('a fork from there is refused while no checkpoint has its state', async () => {
  const log = await begunAtFour();
  const found = { runId: log.runId, log, record: await log.run() };
  await expect(originAt(found, 4)).rejects.toMatchObject({
    code: 'NotFound',
    message: expect.stringContaining('a standby began term 2'),
    hint: `petrel fork ${log.runId} --from 3`,
  });
  expect(await originAt(found, 3)).toMatchObject({ position: 3 });
  await saveBuilt(log, 2, 4, own);
  expect(await originAt(found, 4)).toMatchObject({ stateDigest: stateDigests(builtState(own)).stateDigest });
});

it('the validation of the state before is not that of the checkpoint there', async () => {
  const log = await begunAtFour();
  await saveBuilt(log, 2, 4, own);
  expect((await log.checkpoints.names()).map(({ iteration }) => iteration)).toEqual([4, 2]);
  expect(await bestCheckpoint(log)).toBeUndefined();
});

it('the policy there is validated when it is due, although the state before was', async () => {
  const log = await begunAtFour();
  const { recipe, inputs } = await log.revision();
  const context = { log, recipe: parseRecipe(recipe), inputs, iterations: 4 };
  const contexts = { log: async () => log, head: async () => ({ context, head: await log.head() }) };
  const nothing = () => {};
  const ports = {
    dispatcher: { runResumed: nothing },
    events: { begin: nothing },
    findHole: async () => undefined,
    endSweep: async () => {},
    now: () => new Date(),
  };
  const ref = { runId: log.runId, store: log.store.url };
  const recovered = recoverHead(ports as unknown as ActivityPorts, contexts as unknown as RunContexts, ref);
  expect(await recovered).toMatchObject({ position: 4, evaluationDue: true });
});
