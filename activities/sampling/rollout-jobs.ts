/**
 * The rollout and reward jobs of an iteration or a validation. They are derived from the records, so every stage gets
 * the same jobs.
 */
import type { Head } from '../../log/run/run-log.ts';
import { cursorAfter } from '../../core/rl/draws.ts';
import {
  endpointSettings,
  rewardComponentsOf,
  samplerEngine,
  samplingServer,
  samplingSettings,
  scoresLists,
} from '../../core/recipe/index.ts';
import { scorerSettings } from '../../core/recipe/scorer-settings.ts';
import { publishedAs } from '../../core/records/publications.ts';
import { anyProfile, queueOf } from '../../core/records/profile-ids.ts';
import type { NumericProfile } from '../../core/records/schema.ts';
import type { Digest } from '../../core/ids.ts';
import type { RolloutPurpose, ScoringSettings } from '../../core/wire/jobs/index.ts';
import type { JobRequest } from '../../core/ports/jobs.ts';
import type { RunContext } from '../term/run-context.ts';
import { promptsPerJob, samplesPerDraw, seedOf } from '../settings.ts';

/** What the draws of a stage are for. */
export type Purpose = Exclude<RolloutPurpose, 'baseline'>;

/** One job per `promptsPerJob` draws, in draw order. `wave`: of training; its draws follow those of the one before. */
export function rolloutJobs(context: RunContext, head: Head, purpose: Purpose, wave = 0): JobRequest<'rollout'>[] {
  const { recipe, inputs, log } = context;
  const { profile } = head;
  const [sampler, server] = [samplerEngine(recipe), samplingServer(recipe)];
  const tensorParallel = recipe.rollout.tensor_model_parallel_size;
  const draws =
    purpose === 'train' ? context.draws(cursorOfWave(context, head.counters.cursor, wave)) : validationDraws(context);
  const perJob = promptsPerJob(recipe, purpose);
  const dataset = purpose === 'train' ? inputs.train : (inputs.validation ?? inputs.train);
  const ahead = aheadOf(context, purpose, dataset);
  const jobs: JobRequest<'rollout'>[] = [];
  for (let start = 0; start < draws.length; start += perJob) {
    jobs.push({
      stage: 'rollout',
      runId: log.runId,
      at: { term: head.term, iteration: head.position },
      store: log.store,
      profile: samplingQueue(profile, sampler),
      needs: recipe.fleet.needs.rollout,
      input: {
        purpose,
        sampler,
        ...(server && { server }),
        ...(tensorParallel > 1 && { tensorParallel }),
        model: inputs.model,
        dataset,
        weights: head.weightsDigest,
        profile,
        draws: draws.slice(start, start + perJob).map(({ draw, row }) => ({ draw, row })),
        samplesPerDraw: samplesPerDraw(recipe, purpose),
        sampling: samplingSettings(recipe, purpose),
        maxNewTokens: recipe.data.max_response_length,
        maxSequences: recipe.rollout.max_num_seqs,
        stopStrings: recipe.rollout.stop,
        seed: seedOf(recipe, purpose),
      },
      ...publishedAs(head.publication),
      ...ahead,
      isNew: head.isOwn === true,
    });
  }
  return jobs;
}

/** A sampler that is no trainer promises no bits: any worker that has it may sample. */
const samplingQueue = (profile: NumericProfile, sampler: string): string =>
  queueOf(sampler === profile.engine ? profile : { engine: sampler, id: anyProfile });

/** The cursor behind so many waves of an iteration that starts at `cursor`. */
export function cursorOfWave({ draws, candidates = draws }: RunContext, cursor: number, waves: number): number {
  let next = cursor;
  for (let wave = 0; wave < waves; wave++) next = cursorAfter(next, candidates(next));
  return next;
}

/** Every validation row once, in order. */
function validationDraws(context: RunContext) {
  return Array.from({ length: context.inputs.validationRows ?? 0 }, (_, row) => ({ draw: row, row }));
}

/** The job that samples a greedy response to each prompt of a training job. */
export function baselineJob(context: RunContext, job: JobRequest<'rollout'>): JobRequest<'rollout'> {
  const purpose = 'baseline';
  const { recipe } = context;
  const input = {
    ...job.input,
    purpose,
    sampling: samplingSettings(recipe, purpose),
    samplesPerDraw: samplesPerDraw(recipe, purpose),
  } as const;
  return { ...job, input, ...aheadOf(context, purpose, input.dataset) };
}

/** `rollout`: the job that was run, and the id by which it was. */
export function rewardJob(
  context: RunContext,
  rollout: JobRequest<'rollout'>,
  { trajectories, jobId }: { readonly trajectories: Digest; readonly jobId: string },
  again: number,
): JobRequest<'reward'> {
  const { purpose, dataset } = rollout.input;
  return {
    stage: 'reward',
    runId: rollout.runId,
    at: rollout.at,
    store: rollout.store,
    profile: anyProfile,
    needs: context.recipe.fleet.needs.reward,
    input: { trajectories, ...scoringOf(context, purpose, dataset), ...(again === 0 ? {} : { again }) },
    follows: jobId,
    ...(rollout.isNew === true && { isNew: true }),
  };
}

/**
 * What is scored in lists waits for the last response to its prompt, so it is not scored ahead; nor is what only some
 * machines may score, since whoever samples would score, too.
 */
function aheadOf(
  context: RunContext,
  purpose: RolloutPurpose,
  dataset: Digest,
): Pick<JobRequest<'rollout'>, 'scoring'> {
  const { recipe } = context;
  const isLater = scoresLists(recipe) || recipe.fleet.needs.reward !== undefined;
  return isLater ? {} : { scoring: scoringOf(context, purpose, dataset) };
}

function scoringOf({ recipe, inputs }: RunContext, purpose: RolloutPurpose, dataset: Digest): ScoringSettings {
  const components = rewardComponentsOf(recipe);
  const endpoint = endpointSettings(recipe);
  return {
    model: inputs.model,
    dataset,
    scorer: inputs.scorer ?? { type: 'builtin', revision: '1' },
    settings: scorerSettings(recipe),
    timeoutMs: Math.round(recipe.reward.timeout * 1000),
    memoryMb: recipe.reward.memory_limit_mb,
    concurrency: recipe.reward.num_workers,
    ...(recipe.reward.sandbox ? { sandbox: true } : {}),
    ...(scoresLists(recipe) ? { lists: true } : {}),
    deterministic: recipe.deterministic === true,
    ...(endpoint && { endpoint }),
    ...(purpose === 'train' && components.length > 0 && { components }),
  };
}
