import { afterAll, describe, expect, it } from 'vitest';
import { appendStatus } from '../../log/run/status.ts';
import { cliHome } from '../../tests/cli.ts';
import { buildRun } from '../../tests/run-builder.ts';
import { createFork, originAt } from './fork.ts';

const cli = cliHome();
afterAll(() => cli.remove());

describe('a run that is being forked', () => {
  it('is not deleted until the fork has its state or was deleted', async () => {
    const { runId, log } = await buildRun(await cli.store(), {
      done: 2,
      checkpoints: [2],
      status: { state: 'stopped' },
    });
    const revision = await log.revision();
    const found = { runId, log, record: await log.run() };
    const fork = await createFork(found, await originAt(found, 1), revision, undefined, new Date());
    expect(fork.record.origin).toMatchObject({
      runId,
      position: 1,
      counters: { cursor: 2, optimizerSteps: { actor: 1 } },
    });
    await expect(cli.petrel('rm', runId, '-y')).rejects.toMatchObject({
      code: 'Conflict',
      message: expect.stringContaining(fork.runId),
    });
    await appendStatus(fork.log, { state: 'cancelled' }, new Date());
    await cli.petrel('rm', fork.runId, '-y');
    await cli.petrel('rm', runId, '-y');
    const { origin } = fork.record;
    await expect(createFork(found, origin!, revision, undefined, new Date())).rejects.toMatchObject({
      code: 'NotFound',
      message: expect.stringContaining('deleted'),
    });
  });
});
