/**
 * Opening a term after the first: the old one is closed at its next free key, so that nothing committed is lost and no
 * late writer can append, then the new one is decided. A process that dies anywhere between leaves a closed log, and
 * whoever tries again goes on from there. Two that race meet at the new term's key: one wins, the other is told who.
 */
import { FencedError, InvalidInputError, TerminalError } from '../../core/errors.ts';
import { keys } from '../../core/records/keys.ts';
import { recordFormat, termRecord } from '../../core/records/schema.ts';
import type { BatchRecord, BatchSeal, TermRecord, UpdateSeal, Writer } from '../../core/records/schema.ts';
import { mergeRanges } from '../../core/rl/draws.ts';
import type { DrawRange } from '../../core/rl/draws.ts';
import { pinPosition } from '../retention/entries.ts';
import { createDecision, decide, encodeRecord } from './records.ts';
import type { Stored } from './records.ts';
import { beginOf } from './run-log.ts';
import type { Head, RunLog } from './run-log.ts';

export interface WantedTerm {
  /** The term that it follows: who has seen this one wants the next. */
  readonly after: number;
  /** The committed position to go on from; left out: where the log ends. */
  readonly position?: number;
  /** No batch of it uses a draw of the iterations that it gives up. */
  readonly skipDraws: boolean;
  /** Left out: the revision of the term before. */
  readonly revision?: number;
  /** Tokens of the largest micro-batch, when the revision changes them. */
  readonly maxTokensPerMicroBatch?: number;
  readonly owner: string;
  readonly reason: string;
  readonly writer: Writer;
}

/** Throws FencedError that names the owner when another one opened it, InvalidInputError for a position that is not committed. */
export async function openNextTerm(log: RunLog, wanted: WantedTerm): Promise<Stored<TermRecord>> {
  const newest = await log.newestTerm();
  if (newest === undefined)
    throw new TerminalError('NoTerm', `${log.runId} has no term yet: there is nothing to go on from`);
  if (newest.record.term === wanted.after + 1 && isOurs(newest.record, wanted)) return newest;
  if (newest.record.term !== wanted.after) throw openedBy(newest.record);
  await refusePosition(log, wanted);
  const unpin =
    wanted.position === undefined
      ? undefined
      : await pinPosition(log, { position: wanted.position, why: wanted.reason, forMs: openingMs }, () => new Date());
  try {
    return await decideTerm(log, wanted);
  } finally {
    await unpin?.();
  }
}

/** Longer than it takes to decide a term. */
const openingMs = 10 * 60_000;

async function decideTerm(log: RunLog, wanted: WantedTerm): Promise<Stored<TermRecord>> {
  const head = await sealTerm(log, wanted);
  const record = await nextTerm(log, head, wanted);
  return decide(log.store, keys.term(log.runId, record.term), termRecord, record, (other) => {
    if (isOurs(other, wanted)) return true;
    throw openedBy(other);
  });
}

/**
 * Closes the term `after` unless it is closed. What was committed until then counts; the head that it returns is final.
 * Throws FencedError when a newer term is there: that one is not ours to close.
 */
export async function sealTerm(
  log: RunLog,
  { after, owner, reason, writer }: Pick<WantedTerm, 'after' | 'owner' | 'reason' | 'writer'>,
): Promise<Head> {
  for (;;) {
    const head = await log.head();
    if (head === undefined) throw new TerminalError('NoTerm', `${log.runId} has no term to close`);
    if (head.term !== after) throw openedBy(head.termRecord);
    if (head.seal !== undefined) return head;
    const iteration = head.position + 1;
    const shared = {
      format: recordFormat,
      runId: log.runId,
      term: head.term,
      iteration,
      owner,
      reason,
      writer,
    } as const;
    const seal: BatchSeal | UpdateSeal =
      head.pending === undefined
        ? { ...shared, parent: head.parent, decision: 'seal' }
        : { ...shared, parent: head.pending.digest, outcome: 'seal' };
    const key =
      head.pending === undefined
        ? keys.batch(log.runId, head.term, iteration)
        : keys.update(log.runId, head.term, iteration);
    // Whoever was quicker has committed something, or closed it: read on.
    await createDecision(log.store, key, encodeRecord(seal));
  }
}

async function nextTerm(log: RunLog, head: Head, wanted: WantedTerm): Promise<TermRecord> {
  const position = wanted.position ?? head.position;
  const at = await log.at(position);
  const { revision, profile } = head.termRecord;
  const inherited = (await log.chain()).flatMap(({ record }) => record.skippedDraws);
  const given = wanted.skipDraws ? await drawsAfter(log, head, position) : [];
  return {
    format: recordFormat,
    runId: log.runId,
    term: head.term + 1,
    parent: await log.parentAt(position),
    startState: at.stateDigest,
    startWeights: at.weightsDigest,
    revision: wanted.revision ?? revision,
    profile: { ...profile, maxTokensPerMicroBatch: wanted.maxTokensPerMicroBatch ?? profile.maxTokensPerMicroBatch },
    owner: wanted.owner,
    reason: wanted.reason,
    skippedDraws: mergeRanges([...inherited, ...given], at.counters.cursor),
    writer: wanted.writer,
  };
}

/** Draws of the committed iterations after a position, and of a batch that was not applied. */
async function drawsAfter(log: RunLog, head: Head, position: number): Promise<DrawRange[]> {
  const ranges: DrawRange[] = [];
  const add = ({ draws }: BatchRecord) => ranges.push(...draws.map(({ draw }): DrawRange => [draw, draw + 1]));
  for await (const { batch } of log.iterations(position + 1)) add(batch.record);
  if (head.pending !== undefined) add(head.pending.record);
  return ranges;
}

async function refusePosition(log: RunLog, { position }: WantedTerm): Promise<void> {
  if (position === undefined) return;
  const head = await log.head();
  const [first, last] = [await log.first(), head?.position ?? 0];
  if (Number.isInteger(position) && position >= first && position <= last) return;
  throw new InvalidInputError(`${log.runId} has no committed iteration ${position}`, {
    hint: `it can go on from ${first} to ${last}`,
  });
}

/** The same wish, written by an earlier attempt. */
function isOurs(term: TermRecord, wanted: WantedTerm): boolean {
  const position = wanted.position ?? beginOf(term);
  return (
    term.term === wanted.after + 1 &&
    term.owner === wanted.owner &&
    term.reason === wanted.reason &&
    beginOf(term) === position &&
    term.revision === (wanted.revision ?? term.revision)
  );
}

function openedBy({ runId, term, owner, reason, writer }: TermRecord): FencedError {
  return new FencedError(`term ${term} of ${runId} was opened by ${owner} at ${writer.at}: ${reason}`, {
    where: runId,
    hint: `${owner} goes on with it; petrel status ${runId} shows where it is`,
  });
}
