import { isDue, isValidationDue } from '../../core/recipe/index.ts';
import { PauseError } from '../../core/errors.ts';
import { keys } from '../../core/records/keys.ts';
import { recordFormat, updateRecord } from '../../core/records/schema.ts';
import type { BatchRecord, UpdateRecord } from '../../core/records/schema.ts';
import type { DesiredState } from '../../core/run-states.ts';
import type { JobRequest } from '../../infra/nats/dispatcher.ts';
import type { JobResult, WaitOptions } from '../../infra/nats/wait-session.ts';
import { liveNote } from '../live-note.ts';
import { poisonBatch } from '../poison.ts';
import type { ActivityPorts } from '../ports.ts';
import { trains } from '../settings.ts';
import { updateTimings } from '../stage-timings.ts';
import { recordWriter } from '../record-writer.ts';
import type { RunContext, RunRef } from '../run-context.ts';
import type { At } from '../sampling/rollouts.ts';
import { withBatch } from './batch.ts';
import { headOf } from './head-of.ts';
import type { StageServices } from './services.ts';

export interface UpdateSummary {
  readonly position: number;
  readonly wish: DesiredState;
  readonly evaluationDue: boolean;
}

type PendingBatch = NonNullable<At['head']['pending']>;

/** Applies the committed batch. The update record is the commit of the iteration. */
export async function update(services: StageServices, ref: RunRef): Promise<UpdateSummary> {
  const { ports, contexts } = services;
  const { context, head } = await headOf(contexts, ref, true);
  const maxBadSteps = context.recipe.trainer.max_bad_steps;
  const { pending } = head;
  if (pending === undefined) {
    // An earlier attempt of this activity committed it, and may have died before it returned.
    if (head.counters.badSteps >= maxBadSteps)
      throw badStepsPause(ref.runId, head.counters.badSteps, 'see the update record');
    return summary(head.position, context);
  }
  const iteration = head.position + 1;
  const result = await ports
    .whileHeartbeating((signal) => applied(services, { context, head, signal }, pending))
    .catch((error: unknown) => {
      throw poisonBatch(error, ref.runId, iteration);
    });
  const { output } = result;
  const decided = await ports.decide(
    context.log.store,
    keys.update(ref.runId, head.term, iteration),
    updateRecord,
    { ...recordOf({ context, head }, pending, result), writer: recordWriter(ports) },
    (other) => other.batch === pending.digest,
  );
  sayIteration(ports, decided.record, pending.record);
  if (decided.record.outcome === 'skipped' && output.after.badSteps >= maxBadSteps)
    throw badStepsPause(ref.runId, output.after.badSteps, output.reason);
  return summary(iteration, context);
}

function applied(services: StageServices, at: At, { digest, record }: PendingBatch): Promise<JobResult<'update'>> {
  const { context, head, signal } = at;
  const { log, recipe, inputs } = context;
  const iteration = head.position + 1;
  const { profile } = head;
  // Nothing that was applied again should have to be applied a third time.
  const isLastAgain = iteration === head.termRecord.adopts?.until;
  const save = isLastAgain || isDue(iteration, recipe.trainer.save_freq) || iteration === context.iterations;
  const request: JobRequest<'update'> = {
    stage: 'update',
    runId: log.runId,
    at: { term: head.term, iteration: head.position },
    store: log.store,
    profile: profile.id,
    input: { parentState: head.stateDigest, batch: digest, model: inputs.model, profile, save, ...trains(recipe) },
  };
  const onProgress: WaitOptions['onProgress'] = (progress, queued) =>
    services.ports.live(log.runId, liveNote('update', iteration, progress, queued));
  return withBatch(services, at, record, () => services.recompute.run(request, { signal, onProgress }));
}

function recordOf(
  { context, head }: Omit<At, 'signal'>,
  batch: PendingBatch,
  { output, timings }: JobResult<'update'>,
): Omit<UpdateRecord, 'writer'> {
  return {
    format: recordFormat,
    runId: context.log.runId,
    term: head.term,
    iteration: head.position + 1,
    batch: batch.digest,
    parentState: head.stateDigest,
    outcome: output.outcome,
    ...(output.reason === undefined ? {} : { reason: output.reason }),
    stateDigest: output.stateDigest,
    components: output.components,
    after: output.after,
    metrics: output.metrics,
    timings: updateTimings(batch.record, timings, Date.now()),
  };
}

async function summary(position: number, { log, recipe, iterations }: RunContext): Promise<UpdateSummary> {
  const wish = (await log.status())?.wish ?? 'run';
  return { position, wish, evaluationDue: isValidationDue(recipe, position, iterations) };
}

function sayIteration(ports: ActivityPorts, update: UpdateRecord, batch: BatchRecord): void {
  const score = batch.metrics['critic/score/mean'];
  const gradNorm = update.metrics['actor/grad_norm'];
  const parts = [
    `iteration ${update.iteration}`,
    score === undefined ? undefined : `reward ${Number(score).toFixed(3)}`,
    gradNorm === undefined ? undefined : `grad norm ${Number(gradNorm).toFixed(3)}`,
    update.outcome === 'skipped' ? `skipped: ${update.reason ?? ''}` : undefined,
  ];
  ports.say(
    update.runId,
    update.outcome === 'skipped' ? 'warn' : 'info',
    parts.filter((part) => part !== undefined).join(', '),
  );
}

function badStepsPause(runId: string, badSteps: number, reason: string | undefined): PauseError {
  return new PauseError(
    'TooManyBadSteps',
    `${badSteps} updates in a row took no optimiser step; last: ${reason ?? 'unknown'}`,
    {
      hint: 'Lower actor.optim.lr or fix the data, then run petrel resume',
      where: runId,
    },
  );
}
