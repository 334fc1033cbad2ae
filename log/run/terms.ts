/**
 * Opening a term after the first. The old term is closed at its next free key, so that nothing committed is lost and a
 * late writer cannot append; then the new term is decided. A process that dies in between leaves a closed log, and the
 * next attempt opens the term. When two processes open a term at the same time, one creates the new term's key and the
 * other gets a FencedError that names the winner.
 */
import { FencedError, InvalidInputError, TerminalError } from '../../core/errors.ts';
import { componentOf, mapComponents } from '../../core/records/components.ts';
import type { Components } from '../../core/records/components.ts';
import type { Digest } from '../../core/ids.ts';
import { keys } from '../../core/records/keys.ts';
import { recordFormat, termRecord } from '../../core/records/schema.ts';
import type {
  BatchRecord,
  BatchSeal,
  ComponentState,
  NumericProfile,
  TermRecord,
  UpdateSeal,
  Writer,
} from '../../core/records/schema.ts';
import { mergeRanges } from '../../core/rl/draws.ts';
import type { DrawRange } from '../../core/rl/draws.ts';
import { adoptableUntil } from './earlier-batches.ts';
import { beginOf, lineageFrom } from './lineage.ts';
import { findHole } from './log-holes.ts';
import { createDecision, decide, encodeRecord } from '../objects/records.ts';
import type { Stored } from '../objects/records.ts';
import { pinPosition } from './retention-log.ts';
import type { Head, LogPosition, RunLog } from './run-log.ts';

export interface WantedTerm {
  /** The newest term that the caller has seen; the new term gets the next number. */
  readonly after: number;
  /** The committed position to continue from; default: the end of the log. */
  readonly position?: number;
  /** The new term's batches use no draw of the iterations that it abandons. */
  readonly skipDraws: boolean;
  /** Default: the revision of the term before. */
  readonly revision?: number;
  /** Tokens of the largest micro-batch, when the revision changes them. */
  readonly maxTokensPerMicroBatch?: number;
  /** Another arithmetic: the term starts at a checkpoint and applies the later batches again. */
  readonly engine?: EngineChange;
  /** A standby leads from its own state at the position where the term starts. */
  readonly standby?: StandbyStart;
  readonly owner: string;
  readonly reason: string;
  readonly writer: Writer;
}

export interface EngineChange {
  /** The arithmetic from now on. */
  readonly profile: NumericProfile;
  /**
   * The start of the term: a checkpoint that was verified, the first position of the log, or the state of a standby.
   */
  readonly from: number;
}

/** The state of a standby, as its last update names it. */
export interface StandbyStart {
  /** Id of that job. */
  readonly result: string;
  readonly stateDigest: Digest;
  readonly components: Components<ComponentState>;
}

/** Position at which the term starts; undefined: the end of the log. */
const wantedBegin = ({ engine, position }: WantedTerm): number | undefined => engine?.from ?? position;

/**
 * Throws FencedError with the owner's name when another process opened it, InvalidInputError for a position that is not
 * committed.
 */
export async function openNextTerm(log: RunLog, wanted: WantedTerm): Promise<Stored<TermRecord>> {
  const newest = await log.newestTerm();
  if (newest === undefined)
    throw new TerminalError('NoTerm', `${log.runId} has no term yet: there is no position to continue from`);
  if (newest.record.term === wanted.after + 1 && isOurs(newest.record, wanted)) return newest;
  if (newest.record.term !== wanted.after) throw openedBy(newest.record);
  await refusePosition(log, wanted);
  if (wanted.position === undefined) await refuseHole(log);
  const begin = wantedBegin(wanted);
  const unpin =
    begin === undefined
      ? undefined
      : await pinPosition(log, { position: begin, why: wanted.reason, forMs: openingMs }, () => new Date());
  try {
    return await decideTerm(log, wanted);
  } finally {
    await unpin?.();
  }
}

/** Longer than creating a term record takes. */
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
 * Closes the term `after` unless it is closed, and returns the end of its log, which is final. Throws FencedError when
 * a newer term exists, because only its opener may close that one.
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
    // Another writer may have created this key first: read the log again.
    await createDecision(log.store, key, encodeRecord(seal));
  }
}

async function nextTerm(log: RunLog, head: Head, wanted: WantedTerm): Promise<TermRecord> {
  const begin = wantedBegin(wanted) ?? head.position;
  // Another opener may have added a term since `head` was read. All reads are of the log that `head` ends.
  const at = await log.at(begin, head.termRecord);
  const revision = wanted.revision ?? head.termRecord.revision;
  const until = adoptedUntil(head, wanted);
  const chain = (await log.chain(head.termRecord)).map(({ record }) => record);
  const inherited = chain.flatMap(({ skippedDraws }) => skippedDraws);
  const standby = wanted.standby ?? standbyAt(chain, begin);
  const given = wanted.skipDraws ? await drawsAfter(log, head, wanted.position ?? head.position) : [];
  const parent = await log.parentAt(begin, head.termRecord);
  return {
    format: recordFormat,
    runId: log.runId,
    term: head.term + 1,
    parent,
    lineage: await lineageFrom(log.stretches(head.termRecord), parent.term),
    startState: (wanted.standby ?? at).stateDigest,
    components: mapComponents(head.termRecord.components, ({ profile }, name) => ({
      ...stateOf(wanted.standby ?? at, name),
      profile: profileOf(wanted, profile),
    })),
    revision,
    owner: wanted.owner,
    reason: wanted.reason,
    ...(until > begin ? { adopts: { term: head.term, until } } : {}),
    ...(standby && { standby: { result: standby.result } }),
    skippedDraws: mergeRanges([...inherited, ...given], at.counters.cursor),
    writer: wanted.writer,
  };
}

/** A term at the same position as one that a standby has begun starts with its state, too. */
function standbyAt(chain: readonly TermRecord[], begin: number): TermRecord['standby'] {
  const before = chain.find((term) => beginOf(term) <= begin);
  return before !== undefined && beginOf(before) === begin ? before.standby : undefined;
}

function stateOf({ components }: Pick<LogPosition, 'components'>, name: string): ComponentState {
  const { stateDigest, weightsDigest } = componentOf(components, name);
  return { stateDigest, weightsDigest };
}

function profileOf({ engine, maxTokensPerMicroBatch }: WantedTerm, before: NumericProfile): NumericProfile {
  const profile = engine?.profile ?? before;
  return { ...profile, maxTokensPerMicroBatch: maxTokensPerMicroBatch ?? profile.maxTokensPerMicroBatch };
}

/**
 * The iteration up to which the new term applies earlier batches again. With another arithmetic: up to the position, or
 * the end of the log. For a redo: none. Otherwise: as far as the old term still had to.
 */
function adoptedUntil(head: Head, { engine, position }: WantedTerm): number {
  if (engine !== undefined) return position ?? adoptableUntil(head);
  return position === undefined ? (head.termRecord.adopts?.until ?? 0) : 0;
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
    hint: `it can continue from any iteration from ${first} to ${last}`,
  });
}

/**
 * Refuses a log that lost a record in its middle: its end is found too early, and a new term from there would abandon
 * the later iterations.
 */
async function refuseHole(log: RunLog): Promise<void> {
  const hole = await findHole(log, await log.head());
  if (hole !== undefined) throw hole;
}

/** The same term, opened by an earlier attempt. */
function isOurs(term: TermRecord, wanted: WantedTerm): boolean {
  const position = wantedBegin(wanted) ?? beginOf(term);
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
    hint: `${owner} drives the run now; petrel status ${runId} shows where it is`,
  });
}
