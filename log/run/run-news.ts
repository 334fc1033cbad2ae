/** What is new in a run's log since a place of its feed, from the store. */
import { isDamage } from '../../core/records/damage.ts';
import { isGiven } from '../../core/given-loss.ts';
import { commonPosition, validatedWith } from '../../core/run-feed.ts';
import type { FeedIteration, FeedPlace, FeedTerm, FeedValidation, News } from '../../core/run-feed.ts';
import type { BatchRecord, EvalRecord, UpdateRecord } from '../../core/records/schema.ts';
import type { LogEnd, Stretch } from './lineage.ts';
import type { Head, RunLog } from './run-log.ts';

/** News, and the terms of the log that they are about. */
export interface ReadNews {
  readonly news: News;
  readonly terms: readonly FeedTerm[];
}

/** `most`: only so many of the newest iterations are read. */
export async function newsSince(log: RunLog, from: FeedPlace, most: number): Promise<ReadNews> {
  const status = await log.status.newest();
  const seen = { status: status?.n ?? 0 };
  const head = await log.head();
  const newStatus = status !== undefined && status.n > from.status ? status : undefined;
  if (head === undefined) {
    const news = { from, to: { ...from, ...seen }, base: from.iteration, status: newStatus };
    return { news: { ...news, iterations: [], validations: [] }, terms: [] };
  }
  const terms: Stretch[] = [];
  for await (const stretch of log.stretches(head.termRecord)) terms.push(stretch);
  const begin = terms.at(-1)?.from ?? 0;
  const common = Math.min(commonPosition(from, terms), head.position);
  const base = Math.max(begin, common, head.position - most);
  const iterations: FeedIteration[] = [];
  for (let k = base + 1; k <= head.position; k++) {
    const found = await readableIteration(log, k, head);
    if (found !== undefined) iterations.push(found);
  }
  const validated = validatedWith(from, common);
  const validations = await newValidations(log, head, Math.max(validated + 1, begin, head.position - most), validated);
  const { term, position: iteration } = head;
  const to = { ...seen, term, iteration, validated: validations.at(-1)?.iteration ?? validated };
  return {
    news: { from, to, base, status: newStatus, owner: head.termRecord.owner, iterations, validations },
    terms,
  };
}

/** Validations from `first` on. For a reader that knows none, at least the newest one. */
async function newValidations(log: RunLog, end: Head, first: number, known: number): Promise<FeedValidation[]> {
  const found: EvalRecord[] = await log.evaluations.upTo(end, first);
  const newest = found.length === 0 && known < 0 ? await log.evaluations.newest(end) : undefined;
  return (newest === undefined ? found : [newest]).map(({ iteration, term, accuracy, metrics, timings }) => ({
    ...{ iteration, term, accuracy },
    ...{ metrics, timings },
  }));
}

/** Undefined for an iteration whose records are missing or damaged; `ledger verify` reports that. */
async function readableIteration(log: RunLog, k: number, { termRecord }: LogEnd): Promise<FeedIteration | undefined> {
  try {
    const { batch, update } = await log.iteration(k, termRecord);
    return feedIteration(batch.record, update.record);
  } catch (error) {
    if (isDamage(error)) return undefined;
    throw error;
  }
}

function feedIteration(batch: BatchRecord, update: UpdateRecord): FeedIteration {
  return {
    iteration: update.iteration,
    term: update.term,
    at: update.writer.at,
    given: isGiven(batch),
    batch: { metrics: batch.metrics, timings: batch.timings },
    update: { metrics: update.metrics, timings: update.timings },
  };
}
