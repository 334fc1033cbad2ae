/**
 * The results of rollout and reward as blobs, whose digests the workflow passes on to advantage. They are temporary: no
 * record names them, and advantage removes them after it has committed the batch record. When one is missing, damaged
 * or of another attempt, advantage finds the same jobs again, as it does for workflows that older code started.
 */
import { z } from 'zod';
import { isDamage } from '../core/damage.ts';
import type { Digest } from '../core/ids.ts';
import { keys } from '../core/records/keys.ts';
import { digest, metricValues } from '../core/records/schema.ts';
import type { JobResult } from '../infra/nats/wait-session.ts';
import type { RunLog } from '../infra/store/run-log.ts';
import type { ActivityPorts } from './ports.ts';
import { endedJob, type EndedJob, type ScoredJobs, type ScoredRollout } from './sampling/scored-rollouts.ts';

/** Digests of both facts. */
export interface StageFacts {
  readonly rollouts?: Digest | undefined;
  readonly rewards?: Digest | undefined;
}

type BlobPorts = Pick<ActivityPorts, 'getJsonBlob' | 'putJsonBlob'>;
type Log = Pick<RunLog, 'store' | 'runId'>;

const count = z.int().nonnegative();

const span = z.object({ from: z.number(), until: z.number() });
const endedJobFact = z.object({ jobId: z.string(), timings: metricValues, span: span.optional() });

const rolloutFact = z.object({ job: endedJobFact, trajectories: digest, samples: count, responseTokens: count });
type RolloutFact = z.infer<typeof rolloutFact>;

/** One entry per rollout job of the first wave, in draw order. */
const rolloutsFact = z.array(rolloutFact);

const rewardFact = z.object({ job: endedJobFact, trajectories: digest, scores: digest, failed: count });
type RewardFact = z.infer<typeof rewardFact>;

/**
 * One entry per reward job, in draw order; `trajectories` is what it scored. What only this stage samples is here with
 * its rollout: later waves and greedy responses.
 */
const rewardsFact = z.array(
  rewardFact.extend({
    later: z.object({ wave: z.int().positive(), rollout: rolloutFact }).optional(),
    baseline: z.object({ rollout: rolloutFact, reward: rewardFact }).optional(),
  }),
);

export function putRollouts(ports: BlobPorts, log: Log, results: readonly JobResult<'rollout'>[]): Promise<Digest> {
  const fact = results.map((result) => rolloutFactOf({ ...result.output, rollout: endedJob('rollout', result) }));
  return ports.putJsonBlob(log.store, log.runId, fact);
}

export function putRewards(ports: BlobPorts, log: Log, scored: readonly ScoredRollout[]): Promise<Digest> {
  const fact: z.infer<typeof rewardsFact> = scored.map((one) => ({
    ...rewardFactOf(one),
    ...(one.wave > 0 && { later: { wave: one.wave, rollout: rolloutFactOf(one) } }),
    ...(one.baseline && { baseline: { rollout: rolloutFactOf(one.baseline), reward: rewardFactOf(one.baseline) } }),
  }));
  return ports.putJsonBlob(log.store, log.runId, fact);
}

function rolloutFactOf({
  rollout,
  trajectories,
  samples,
  responseTokens,
}: Pick<ScoredJobs, 'rollout' | 'trajectories' | 'samples' | 'responseTokens'>): RolloutFact {
  return { job: jobFact(rollout), trajectories, samples, responseTokens };
}

function rewardFactOf({ reward, trajectories, scores, failed }: ScoredJobs): RewardFact {
  return { job: jobFact(reward), trajectories, scores, failed };
}

/** JSON has no undefined. */
function jobFact({ jobId, timings, span }: EndedJob): z.infer<typeof endedJobFact> {
  return { jobId, timings, ...(span === undefined ? {} : { span }) };
}

function endedJobOf({ jobId, timings, span }: z.infer<typeof endedJobFact>): EndedJob {
  return { jobId, timings, span };
}

/** Undefined when the facts lack a result, which must then be found by its job. */
export async function readFacts(
  ports: BlobPorts,
  log: Log,
  facts: StageFacts,
): Promise<readonly ScoredRollout[] | undefined> {
  if (facts.rollouts === undefined || facts.rewards === undefined) return undefined;
  try {
    return join(
      rolloutsFact.parse(await ports.getJsonBlob(log.store, log.runId, facts.rollouts)),
      rewardsFact.parse(await ports.getJsonBlob(log.store, log.runId, facts.rewards)),
    );
  } catch (error) {
    if (isDamage(error)) return undefined;
    throw error;
  }
}

export async function removeFacts(log: Log, { rollouts, rewards }: StageFacts): Promise<void> {
  for (const fact of [rollouts, rewards]) if (fact !== undefined) await log.store.remove(keys.blob(log.runId, fact));
}

/**
 * Undefined when a rollout was recomputed after the reward stage had ended, or before it started.
 */
function join(
  firstWave: readonly RolloutFact[],
  rewards: z.infer<typeof rewardsFact>,
): readonly ScoredRollout[] | undefined {
  const rollouts = [...firstWave, ...rewards.flatMap(({ later }) => later?.rollout ?? [])];
  if (rollouts.length !== rewards.length) return undefined;
  const joined = rollouts.flatMap((rollout, i): ScoredRollout[] => {
    const reward = rewards[i];
    if (reward?.trajectories !== rollout.trajectories) return [];
    const { later, baseline } = reward;
    return [
      {
        wave: later?.wave ?? 0,
        ...scoredJobsOf(rollout, reward),
        ...(baseline && { baseline: scoredJobsOf(baseline.rollout, baseline.reward) }),
      },
    ];
  });
  return joined.length === rollouts.length ? joined : undefined;
}

function scoredJobsOf({ trajectories, samples, responseTokens, job }: RolloutFact, reward: RewardFact): ScoredJobs {
  return {
    trajectories,
    scores: reward.scores,
    samples,
    responseTokens,
    failed: reward.failed,
    rollout: endedJobOf(job),
    reward: endedJobOf(reward.job),
  };
}
