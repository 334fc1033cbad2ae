/** The messages that a worker gets besides those of its queues: a table of subject, schema and handler. */
import type { Msg, NatsConnection } from '@nats-io/nats-core';
import type { z } from 'zod';
import type { Store } from '../core/ports/store.ts';
import type { Role } from '../core/roles.ts';
import { wantedNeeds, wantedNeedsSubject } from '../core/wire/declarations.ts';
import { endedSamples, endedSamplesSubject, samplesTaken, samplesTakenSubject } from '../core/wire/ended-samples.ts';
import type { EndedSamples } from '../core/wire/ended-samples.ts';
import { isScoringSettings } from '../core/wire/jobs/index.ts';
import {
  jobMessage,
  leaseRelease,
  leaseSubject,
  leaseTaken,
  leaseTakenSubject,
  ownJobSubject,
} from '../core/wire/messages.ts';
import { holdersBefore, newWeights, newWeightsSubject } from '../core/wire/weights.ts';
import type { NewWeights } from '../core/wire/weights.ts';
import { identityText } from '../core/wire/worker-identity.ts';
import type { WorkerIdentity } from '../core/wire/worker-identity.ts';
import { readMessage } from '../infra/nats/incoming.ts';
import { lineWriter } from '../infra/telemetry/run-log-lines.ts';
import type { Engine } from './engine/process/client.ts';
import type { Health } from './health.ts';
import type { Intake } from './intake.ts';
import type { JobRunner } from './job-runner.ts';
import type { TrainerLease } from './lease.ts';
import { isOpenScorer } from './needs.ts';
import type { RewardRole } from './reward/score.ts';

/** The parts of a worker that get its messages. */
export interface Recipients {
  readonly nc: NatsConnection;
  readonly identity: WorkerIdentity;
  readonly roles: readonly Role[];
  readonly openStore: (url: string) => Promise<Store>;
  /** Scorers of the user's own run in a sandbox only. */
  readonly closedToScorers: boolean;
  /** Undefined in a worker that only scores. */
  readonly engine: Engine | undefined;
  readonly intake: Intake;
  readonly runner: JobRunner;
  readonly health: Health;
  readonly lease: TrainerLease;
  readonly reward: RewardRole;
}

type LeaseRelease = z.infer<typeof leaseRelease>;
type LeaseTaken = z.infer<typeof leaseTaken>;

interface Row {
  /** Only workers with this role listen; undefined: all do. */
  readonly role: Role | undefined;
  readonly subject: string;
  readonly hear: (raw: Msg) => void;
}

/** A message that is not JSON or does not match the schema is ignored. */
function row<S extends z.ZodType>(
  role: Role | undefined,
  subject: string,
  schema: S,
  handle: (message: z.infer<S>) => void,
): Row {
  const hear = (raw: Msg) => {
    const message = readMessage(raw, schema);
    if (message !== undefined) handle(message);
  };
  return { role, subject, hear };
}

/** Listens until the connection closes. */
export function openInbox(to: Recipients): void {
  const self = identityText(to.identity);
  const rows: readonly Row[] = [
    row(undefined, ownJobSubject(self), jobMessage, (job) => to.intake.take(job)),
    row(undefined, wantedNeedsSubject, wantedNeeds, ({ needs }) => to.intake.serve(needs)),
    row(undefined, leaseSubject, leaseRelease, (released) => release(to, released)),
    row('trainer', leaseTakenSubject, leaseTaken, (taken) => trainedElsewhere(to, taken)),
    row('rollout', newWeightsSubject, newWeights, (committed) => getWeights(to, committed)),
    row('reward', endedSamplesSubject(self), endedSamples, (told) => scoreAhead(to, told)),
    row('reward', samplesTakenSubject(self), samplesTaken, ({ runId, jobId }) => to.reward.ahead.taken(runId, jobId)),
  ];
  for (const { role, subject, hear } of rows)
    if (role === undefined || to.roles.includes(role))
      to.nc.subscribe(subject, { callback: (error, raw) => void (error === null && hear(raw)) });
}

/** The run's turn is over, or the run pauses or has ended. */
function release({ engine, reward, lease, runner }: Recipients, { runId, turn, cancelled }: LeaseRelease): void {
  if (turn === true) return lease.release(runId);
  engine?.abandon(runId);
  reward.ahead.drop(runId);
  if (cancelled === true) runner.cancel(runId);
  lease.release(runId);
}

/** Another trainer works for a run for which this one waits, or which this one has too. */
function trainedElsewhere({ lease, identity }: Recipients, { by, runId, standsBy, components }: LeaseTaken): void {
  if (by === identityText(identity)) return;
  const isOtherKind = lease.runId === runId && lease.standsBy !== (standsBy === true);
  if (!isOtherKind) lease.trainedElsewhere(runId, components);
}

function getWeights({ engine }: Recipients, committed: NewWeights): void {
  const place = committed.order.indexOf(engine?.serves ?? '');
  if (place > 0) engine?.newWeights(committed, holdersBefore(committed.order, place));
}

function scoreAhead(to: Recipients, told: EndedSamples): void {
  const { nc, identity, runner, health, reward } = to;
  const { scoring } = told;
  if (!isScoringSettings(scoring) || runner.isLeaving || !health.takesJobs) return;
  if (to.closedToScorers && isOpenScorer(scoring)) return; // its reward job is refused, too
  const say = lineWriter(nc, told.runId, identity);
  const report = { progress: () => {}, say: (text: string) => say('info', text) };
  reward.scoreAhead(() => to.openStore(told.store), told, scoring, report);
}
