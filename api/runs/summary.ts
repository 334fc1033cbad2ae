/** The state of a run, from the store alone. It needs no running stack. */
import { lossIn } from '../../core/given-loss.ts';
import { samplesResponses } from '../../core/run-kinds.ts';
import type { RunKind } from '../../core/run-kinds.ts';
import { parseRecipe, totalIterations } from '../../core/recipe/index.ts';
import type { NumericProfile, StatusEntry } from '../../core/records/schema.ts';
import type { RunState, DesiredState } from '../../core/run-states.ts';
import { measureOf } from '../../core/validation-measure.ts';
import type { ValidationMeasure } from '../../core/validation-measure.ts';
import { readRetention } from '../../log/run/retention-log.ts';
import type { Head } from '../../log/run/run-log.ts';
import type { FoundRun } from '../stores/find.ts';

export interface RunSummary {
  readonly runId: string;
  readonly name: string;
  readonly kind: RunKind;
  readonly state: RunState;
  readonly wish: DesiredState;
  /** Committed iterations. */
  readonly iteration: number;
  /** Iterations of the whole run; null when its recipe cannot be read. */
  readonly iterations: number | null;
  readonly policyVersion: number;
  readonly term: number;
  /** The stack that drives it; null before its first term. */
  readonly owner: string | null;
  /** Newest validation accuracy, and its policy version. */
  readonly accuracy: number | null;
  readonly accuracyVersion: number | null;
  /** Which metric `accuracy` is: a score when the scorer gives no acc. null without a validation. */
  readonly validationMeasure: ValidationMeasure | null;
  /** Mean score of the newest iteration. */
  readonly reward: number | null;
  /** The loss of the newest iteration, where responses come with the rows. */
  readonly loss: number | null;
  readonly reason?: NonNullable<StatusEntry['reason']>;
  readonly createdAt: string;
  /** The time of the newest status entry or the newest committed update. */
  readonly changedAt: string;
  readonly profile: NumericProfile | null;
  readonly latestCheckpoint: { readonly iteration: number; readonly stateDigest: string } | null;
  /** Objects that only iterations up to this one need may have been removed; 0: none were. */
  readonly retentionFloor: number;
  readonly store: string;
}

export async function runSummary(found: FoundRun): Promise<RunSummary> {
  return (await summaryAndHead(found)).summary;
}

/** The summary, and the head of the log that it was made from, because reading a head costs requests. */
export async function summaryAndHead({
  runId,
  log,
  record,
}: FoundRun): Promise<{ readonly summary: RunSummary; readonly head: Head | undefined }> {
  const [status, head, iterations, { floor }] = await Promise.all([
    log.status.newest(),
    log.head(),
    iterationsOf(log),
    readRetention(log),
  ]);
  const first = await log.first();
  const [newest, evaluation, checkpoint] = await Promise.all([
    head === undefined || head.position === first ? undefined : log.iteration(head.position, head.termRecord),
    head && log.evaluations.newest(head),
    log.checkpoints.newestName(),
  ]);
  const changes = [record.createdAt, status?.at, newest?.update.record.writer.at]
    .filter((at) => at !== undefined)
    .sort();
  const summary: RunSummary = {
    runId,
    name: record.name,
    kind: record.kind,
    state: status?.state ?? 'queued',
    wish: status?.wish ?? 'run',
    iteration: head?.position ?? 0,
    iterations,
    policyVersion: head?.position ?? 0,
    term: head?.term ?? 0,
    owner: head?.termRecord.owner ?? null,
    accuracy: evaluation?.accuracy ?? null,
    accuracyVersion: evaluation?.iteration ?? null,
    validationMeasure: evaluation === undefined ? null : measureOf(evaluation.metrics),
    reward: finite(newest?.batch.record.metrics['critic/score/mean']),
    loss: samplesResponses(record.kind) ? null : finite(newest && lossIn(newest.update.record.metrics)),
    ...(status?.reason === undefined ? {} : { reason: status.reason }),
    createdAt: record.createdAt,
    changedAt: changes.at(-1) ?? record.createdAt,
    profile: head?.profile ?? null,
    latestCheckpoint:
      checkpoint === undefined ? null : { iteration: checkpoint.iteration, stateDigest: checkpoint.stateDigest },
    retentionFloor: floor,
    store: log.store.url,
  };
  return { summary, head };
}

/** The recipe of a newer petrel version may not parse. The run is shown nevertheless. */
async function iterationsOf(log: FoundRun['log']): Promise<number | null> {
  try {
    const { recipe, inputs } = await log.revision();
    return totalIterations(parseRecipe(recipe), inputs.trainRows);
  } catch {
    return null;
  }
}

function finite(value: number | string | undefined): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}
