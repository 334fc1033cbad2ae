import { componentOf, mapComponents } from '../../core/records/components.ts';
import { keys } from '../../core/records/keys.ts';
import { batchRecord, formatOfBatch } from '../../core/records/schema.ts';
import type { BatchRecord } from '../../core/records/schema.ts';
import { gapsBetween } from '../../core/rl/draws.ts';
import type { AdvantageOutput } from '../../core/wire/jobs/index.ts';
import { hasOwnSampler, type Recipe } from '../../core/recipe/index.ts';
import type { Head } from '../../log/run/run-log.ts';
import { adoptedBatch } from './adopted-batch.ts';
import { recordWriter } from '../term/record-writer.ts';
import type { RunContext, RunRef } from '../term/run-context.ts';
import { choosesPrompts, curriculumOf } from '../settings.ts';
import { batchTimings } from '../sampling/stage-timings.ts';
import { jobsOf, type ScoredJobs } from '../scored-jobs.ts';
import { makeBatch, type MadeBatch } from './batch.ts';
import { beginStage, besideLook } from './begin-stage.ts';
import type { Stage } from './begin-stage.ts';
import type { StageServices } from '../services.ts';

/**
 * Makes the batch of the iteration from scored samples and commits its record, which decides what the iteration trains
 * on. Resolves with the digest of that record.
 */
export async function advantage(services: StageServices, ref: RunRef): Promise<{ readonly batch: string }> {
  const stage = await beginStage(services.contexts, ref);
  return { batch: stage.head.pending?.digest ?? (await newBatch(services, ref, stage)) };
}

async function newBatch(services: StageServices, ref: RunRef, stage: Stage): Promise<string> {
  const { ports, kept } = services;
  const { context, head } = stage;
  const { log } = context;
  const earlier = await ports.batchToAdopt(log, head);
  if (earlier !== undefined) {
    const from = `the batch of term ${earlier.record.term} is applied again`;
    ports.say(ref.runId, 'info', `iteration ${head.position + 1}: ${from}`);
    await stage.look;
    return commitBatch(services, log, adoptedBatch(earlier, head, recordWriter(ports)));
  }
  const made = await besideLook(services, stage, (signal) =>
    makeBatch(services, { context, head, signal }, kept.take(stage)),
  );
  return commitBatch(services, log, { ...recordOf(context, head, made), writer: recordWriter(ports) });
}

function recordOf(
  { log, revision, recipe }: RunContext,
  head: Head,
  { scored, output, timings, jobId, endedAt }: MadeBatch,
): Omit<BatchRecord, 'writer'> {
  return {
    format: formatOfBatch(output),
    runId: log.runId,
    term: head.term,
    iteration: head.position + 1,
    parent: head.parent,
    parentState: head.stateDigest,
    revision: revision.revision,
    tensors: output.tensors,
    ...(output.shards && { shards: output.shards }),
    oldLogProbs: output.oldLogProbs,
    ...(output.layout && { layout: output.layout }),
    components: mapComponents(output.components, ({ learningRates, loss, optimizer }, name) => ({
      profile: componentOf(head.termRecord.components, name).profile.id,
      loss,
      optimizer,
      learningRates: [...learningRates],
    })),
    results: [...scored.flatMap(idsOf), jobId],
    ...(scored.some(({ baseline }) => baseline) && {
      baselines: scored.flatMap(({ baseline }) => (baseline ? idsOf(baseline) : [])),
    }),
    draws: [...output.draws],
    ...passedOver(recipe, head, output),
    before: head.counters,
    after: output.after,
    metrics: output.metrics,
    timings: batchTimings(
      scored.flatMap(jobsOf),
      { timings, ...(endedAt === undefined ? {} : { endedAt }) },
      Date.now(),
    ),
    decision: 'train',
  };
}

/** Counts the draws between the sampled ones, when prompts are chosen. Ranges that the term skips may be among them. */
function passedOver(recipe: Recipe, { counters }: Head, { draws, after }: AdvantageOutput) {
  if (curriculumOf(recipe) === undefined && !choosesPrompts(recipe) && !hasOwnSampler(recipe)) return {};
  const gaps = gapsBetween(counters.cursor, after.cursor, draws);
  return gaps.length === 0 ? {} : { passedOver: gaps };
}

const idsOf = ({ rollout, reward }: ScoredJobs): string[] => [rollout.jobId, reward.jobId];

/** Resolves with the digest of the committed record. */
async function commitBatch({ ports }: StageServices, log: RunContext['log'], record: BatchRecord): Promise<string> {
  const key = keys.batch(log.runId, record.term, record.iteration);
  const decided = await ports.decide(log.store, key, batchRecord, record, (other) => other.parent === record.parent);
  log.appended(decided.adopted ? undefined : decided);
  return decided.digest;
}
