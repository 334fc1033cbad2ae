/**
 * Terms that the answer of a trainer asks for, in a run that is not deterministic. Nobody is asked, and a committed
 * batch keeps its samples.
 *
 * - A trainer on another machine has computed committed iterations again and got another state: the term starts at the
 *   checkpoint that the trainer could load, and applies the later batches again; each gets an update record of its own
 *   (docs/decisions/0011-other-replays.md).
 * - A standby leads that has applied the same batches and got other last bits: the term starts with its state
 *   (docs/decisions/0033-terms-of-standbys.md).
 */
import { isDamage } from '../../core/records/damage.ts';
import { PetrelError, TerminalError } from '../../core/errors.ts';
import { checkpointAt, otherReplayCode, standbyLeadsCode } from '../../core/wire/trainer-answers.ts';
import { outOfDateType } from '../../core/wire/workflow.ts';
import type { TermRecord } from '../../core/records/schema.ts';
import type { Head, RunLog } from '../../log/run/run-log.ts';
import type { ActivityPorts } from '../ports/index.ts';
import { recordWriter } from './record-writer.ts';

/** The reasons that such terms record. */
const replayReason = 'replay';
const standbyReason = 'standby';

type TermPorts = Pick<ActivityPorts, 'openNextTerm' | 'standbyStart' | 'stack' | 'process' | 'now' | 'say'>;
type WantedTerm = Parameters<ActivityPorts['openNextTerm']>[1];

/**
 * The result of a stage at a position. When the trainer's answer asks for a new term, opens it; the workflow then reads
 * the position from the store.
 */
export async function inTermOfTrainer<T>(
  ports: TermPorts,
  log: () => Promise<RunLog>,
  position: number | undefined,
  stage: Promise<T>,
): Promise<T> {
  try {
    return await stage;
  } catch (error) {
    if (!(error instanceof PetrelError) || ![otherReplayCode, standbyLeadsCode].includes(error.code)) throw error;
    const of = await log();
    const head = await of.head();
    if (head === undefined) throw error;
    // Another attempt may have opened it: then the log ends before the position of this stage.
    if (position === undefined || position === head.position) await openTermFor(ports, of, head, error);
    throw new TerminalError(outOfDateType, `${error.message}: a new term continues`, { where: of.runId });
  }
}

/** An attempt that died after it had closed the old term: opens the new one. Resolves with whether it did. */
export async function completeTermOfTrainer(ports: TermPorts, log: RunLog, head: Head): Promise<boolean> {
  const seal = head.seal?.record;
  if (seal?.owner !== ports.stack) return false;
  if (seal.reason === replayReason) {
    await openReplayTerm(ports, log, head, await checkpointBefore(log, head));
    return true;
  }
  if (seal.reason !== standbyReason) return false;
  // Which state it was to start with is not known. The standby says so again when it is asked for the old one.
  await open(ports, log, { ...wantedTerm(ports, head, standbyReason), engine: from(head, head.position) });
  return true;
}

async function openTermFor(ports: TermPorts, log: RunLog, head: Head, error: PetrelError): Promise<void> {
  if (error.code === standbyLeadsCode) return openStandbyTerm(ports, log, head, error.where ?? '');
  const checkpoint = checkpointAt(log.runId, error.where ?? '');
  if (checkpoint === undefined) throw error;
  await openReplayTerm(ports, log, head, checkpoint);
}

async function openReplayTerm(ports: TermPorts, log: RunLog, head: Head, checkpoint: number): Promise<void> {
  const wanted = { ...wantedTerm(ports, head, replayReason), engine: from(head, checkpoint) };
  const { term, adopts } = await open(ports, log, wanted);
  const again = adopts === undefined ? '' : `, and applies the batches up to iteration ${adopts.until} again`;
  ports.say(
    log.runId,
    'warn',
    `this machine computes otherwise than the one before: term ${term} continues after iteration ${checkpoint}${again}`,
  );
}

/** `result`: key of the result that names the standby's state. */
async function openStandbyTerm(ports: TermPorts, log: RunLog, head: Head, result: string): Promise<void> {
  const standby = await ports.standbyStart(log, result, ports.process).catch((error: unknown) => {
    if (isDamage(error)) return undefined;
    throw error;
  });
  if (standby === undefined) return openReplayTerm(ports, log, head, await checkpointBefore(log, head));
  if (head.stateDigest === standby.stateDigest) return; // an attempt before has opened it
  const wanted = { ...wantedTerm(ports, head, standbyReason), engine: from(head, head.position), standby };
  const { term, standby: begun } = await open(ports, log, wanted);
  if (begun?.result !== standby.result) return; // as above, without the state: the standby is asked again
  ports.say(
    log.runId,
    'info',
    `its standby leads, with a state whose last bits are its own: term ${term} continues with it after iteration ${head.position}`,
  );
}

const checkpointBefore = async (log: RunLog, { position }: Head): Promise<number> =>
  (await log.checkpoints.newestName(position))?.iteration ?? (await log.first());

const from = ({ profile }: Head, position: number) => ({ profile, from: position });

const wantedTerm = (ports: TermPorts, { term }: Head, reason: string): WantedTerm => ({
  after: term,
  skipDraws: false,
  owner: ports.stack,
  reason,
  writer: recordWriter(ports),
});

async function open({ openNextTerm }: TermPorts, log: RunLog, wanted: WantedTerm): Promise<TermRecord> {
  const { record } = await openNextTerm(log, wanted).catch(async (error: unknown) => {
    // Another attempt of this stack opened it, from another state.
    const newest = await log.newestTerm();
    if (newest?.record.term === wanted.after + 1 && newest.record.reason === wanted.reason) return newest;
    throw error;
  });
  return record;
}
