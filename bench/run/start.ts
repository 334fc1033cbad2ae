/** Starts a short run of an example by the command line, as a user would do it. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { RunId } from '../../core/ids.ts';
import type { RunState } from '../../core/run-states.ts';
import { packageRoot } from '../../infra/home.ts';
import { openStore } from '../../infra/store/open.ts';
import { defaultStore } from '../../infra/store/places.ts';
import { RunLog } from '../../log/run/run-log.ts';
import { poll } from '../../infra/poll.ts';

const limitMs = 10 * 60 * 1000;
const lookMs = 500;
const over: ReadonlySet<RunState | undefined> = new Set(['completed', 'failed', 'paused', 'stopped', 'cancelled']);

/**
 * Overrides that switch off validations and checkpoints, so that each iteration is only rollout, reward, advantage and
 * update.
 */
const plain = ['data.val_files=null', 'trainer.test_freq=-1', 'trainer.save_freq=-1'];

/**
 * Resolves when the run has completed; with a `store`, a deterministic run there. The stack of `home` stays up. Throws
 * when it ends in any other way.
 */
export async function runExample(home: string, example: string, iterations: number, store?: string): Promise<RunLog> {
  const recipe = join(packageRoot(), 'examples', example, 'recipe.yaml');
  const words = [
    'run',
    recipe,
    '--detach',
    '--json',
    '--name',
    'bench',
    ...plain,
    ...(store === undefined ? [] : ['deterministic=true', `store=${store}`]),
    `trainer.total_training_steps=${iterations}`,
  ];
  const program = join(packageRoot(), 'cli/bin.mjs');
  const { stdout } = await promisify(execFile)(process.execPath, [program, ...words], {
    env: { ...process.env, PETREL_HOME: home },
    timeout: limitMs,
  });
  const { runId } = JSON.parse(stdout) as { readonly runId: RunId };
  const log = new RunLog(await openStore(store ?? defaultStore(home)), runId);
  const ended = await poll(async () => over.has((await log.status.newest())?.state), {
    everyMs: lookMs,
    timeoutMs: limitMs,
  });
  const status = await log.status.newest();
  if (ended !== true || status?.state !== 'completed')
    throw new Error(`the bench's run is ${status?.state}: ${status?.reason?.message ?? 'no reason given'}`);
  return log;
}
