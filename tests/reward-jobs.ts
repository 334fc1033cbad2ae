/** Reward jobs whose input does not matter, and workers of them that are a function instead of a scorer. */
import type { Store } from '../core/ports/store.ts';
import { keys } from '../core/records/keys.ts';
import { recordFormat } from '../core/records/schema.ts';
import type { ResultRecord } from '../core/records/schema.ts';
import type { JobMessage } from '../core/wire/messages.ts';
import { identityText } from '../core/wire/worker-identity.ts';
import type { WorkerIdentity } from '../core/wire/worker-identity.ts';
import type { JobRequest } from '../core/ports/jobs.ts';
import { Puller } from '../infra/nats/jobs/puller.ts';
import type { Claim, PullerPorts } from '../infra/nats/jobs/puller.ts';
import { encodeRecord } from '../log/objects/records.ts';
import { proven } from '../log/objects/result-proof.ts';
import { Slots } from '../workers/slots.ts';

export function rewardJob(
  store: Store,
  runId: string,
  settings: Readonly<Record<string, unknown>> = {},
): JobRequest<'reward'> {
  const input: JobRequest<'reward'>['input'] = {
    trajectories: 't',
    model: 'm',
    dataset: 'd',
    scorer: { type: 'builtin', revision: '1' },
    settings,
    timeoutMs: 1,
    memoryMb: 1,
    concurrency: 1,
    deterministic: false,
  };
  return { stage: 'reward', runId, at: { term: 1, iteration: 1 }, store, profile: 'any', input };
}

type Needed = Pick<PullerPorts, 'nc' | 'timing' | 'identity' | 'handle'>;

/**
 * Takes reward jobs, up to four at a time; it always makes progress, and tells nobody what happens. `ports` can say
 * otherwise.
 */
export function rewardPuller(ports: Needed & Partial<PullerPorts>): Puller {
  let ticks = 0;
  return new Puller({
    role: 'reward',
    profile: 'any',
    room: new Slots(4),
    inFlight: new Set(),
    refuse: async () => undefined,
    ticks: () => ++ticks,
    onFailure: () => {},
    onSuccess: () => {},
    onTrouble: () => {},
    onClaimLost: () => {},
    ...ports,
  });
}

/** Writes the result of a job that this worker has claimed. */
export async function commitScores(
  store: Store,
  { runId, jobId, stage }: Pick<JobMessage, 'runId' | 'jobId' | 'stage'>,
  by: { readonly identity: WorkerIdentity; readonly claim: Pick<Claim, 'secret'>; readonly scores: string },
): Promise<void> {
  const record: ResultRecord = {
    format: recordFormat,
    jobId,
    stage,
    output: { scores: by.scores, failed: 0 },
    timings: { 'timing_s/reward': 1 },
    writer: { process: by.scores, at: 'now' },
  };
  const proof = proven(record, identityText(by.identity), by.claim.secret);
  await store.create(keys.result(runId, jobId), encodeRecord(proof));
}
