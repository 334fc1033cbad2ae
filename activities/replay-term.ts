/**
 * A run that is not deterministic, on a machine that computes otherwise: its trainer computed committed iterations again
 * and got another state. Nobody is asked. A new term starts at the checkpoint that the trainer could load, and applies
 * the later batches again; each gets an update record of its own. docs/decisions/0011-other-replays.md says why.
 */
import { PetrelError, TerminalError } from '../core/errors.ts';
import { checkpointAt, otherReplayCode } from '../core/wire/other-replay.ts';
import { outOfDateType } from '../core/wire/workflow.ts';
import type { Head, RunLog } from '../infra/store/run-log.ts';
import type { ActivityPorts } from './ports.ts';
import { recordWriter } from './record-writer.ts';

/** The reason that such a term records. */
const replayReason = 'replay';

type TermPorts = Pick<ActivityPorts, 'openNextTerm' | 'stack' | 'process' | 'now' | 'say'>;

/**
 * The result of a stage at a position. When a replay came out otherwise, opens the new term; the workflow then reads the
 * position from the store.
 */
export async function inNewTermAfterOtherReplay<T>(
  ports: TermPorts,
  log: () => Promise<RunLog>,
  position: number | undefined,
  stage: Promise<T>,
): Promise<T> {
  try {
    return await stage;
  } catch (error) {
    if (!(error instanceof PetrelError) || error.code !== otherReplayCode) throw error;
    const of = await log();
    const checkpoint = checkpointAt(of.runId, error.where ?? '');
    const head = await of.head();
    if (checkpoint === undefined || head === undefined) throw error;
    // Another attempt may have opened it: then the log ends before the position of this stage.
    if (position === undefined || position === head.position) await openReplayTerm(ports, of, head, checkpoint);
    throw new TerminalError(outOfDateType, `${error.message}: a new term continues after iteration ${checkpoint}`, {
      where: of.runId,
    });
  }
}

/** An attempt that died after it had closed the old term: opens the new one. Resolves with whether it did. */
export async function completeReplayTerm(ports: TermPorts, log: RunLog, head: Head): Promise<boolean> {
  const seal = head.seal?.record;
  if (seal?.owner !== ports.stack || seal.reason !== replayReason) return false;
  const checkpoint = (await log.newestCheckpointName(head.position))?.iteration ?? (await log.first());
  await openReplayTerm(ports, log, head, checkpoint);
  return true;
}

async function openReplayTerm(ports: TermPorts, log: RunLog, head: Head, checkpoint: number): Promise<void> {
  const wanted = {
    after: head.term,
    engine: { profile: head.profile, checkpoint },
    skipDraws: false,
    owner: ports.stack,
    reason: replayReason,
    writer: recordWriter(ports),
  };
  const { record } = await ports.openNextTerm(log, wanted).catch(async (error: unknown) => {
    // Another attempt of this stack opened it, from another checkpoint.
    const newest = await log.newestTerm();
    if (newest?.record.term === head.term + 1 && newest.record.reason === replayReason) return newest;
    throw error;
  });
  const until = record.adopts?.until;
  const again = until === undefined ? '' : `, and applies the batches up to iteration ${until} again`;
  ports.say(
    log.runId,
    'warn',
    `this machine computes otherwise than the one before: term ${record.term} continues after iteration ${checkpoint}${again}`,
  );
}
