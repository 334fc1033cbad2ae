import { isDue, isValidationDue } from '../../core/recipe/index.ts';
import { PauseError } from '../../core/errors.ts';
import { actorOf } from '../../core/records/components.ts';
import { keys } from '../../core/records/keys.ts';
import { queueOf } from '../../core/records/profile-ids.ts';
import { recordFormat, updateRecord } from '../../core/records/schema.ts';
import type { BatchRecord, UpdateRecord } from '../../core/records/schema.ts';
import { samplesResponses } from '../../core/run-kinds.ts';
import type { DesiredState } from '../../core/run-states.ts';
import type { CountedEvents } from '../../infra/fleet/event-counts.ts';
import type { JobRequest, JobResult, WaitOptions } from '../../core/ports/jobs.ts';
import type { Head } from '../../log/run/run-log.ts';
import { liveNote } from '../live-note.ts';
import { joinedUpdate } from './joined-update.ts';
import { forEachPart, profileOfPart, stateOfPart } from '../term/parts.ts';
import { poisonBatch } from '../sampling/poison.ts';
import type { ActivityPorts } from '../ports/index.ts';
import { partsOf } from '../settings.ts';
import type { Part } from '../settings.ts';
import { updateTimings } from '../sampling/stage-timings.ts';
import { recordWriter } from '../term/record-writer.ts';
import type { RunContext, RunRef } from '../term/run-context.ts';
import type { At } from '../sampling/rollouts.ts';
import { withBatch } from './batch.ts';
import { checkpoint } from './checkpoint.ts';
import { beginStage, besideLook } from './begin-stage.ts';
import { endTurnIfWanted } from './turns.ts';
import type { StageServices } from '../services.ts';

export interface UpdateSummary {
  readonly position: number;
  readonly wish: DesiredState;
  readonly evaluationDue: boolean;
}

/** The record of a batch of more draws is not sent with its job: writing it would take this process a while. */
const mostDrawsTold = 5_000;

type PendingBatch = NonNullable<At['head']['pending']>;
type Applied = Pick<JobResult<'update'>, 'output' | 'timings'>;

/** Applies the committed batch. The update record is the commit of the iteration. */
export async function update(services: StageServices, ref: RunRef): Promise<UpdateSummary> {
  const { ports, contexts } = services;
  const stage = await beginStage(contexts, ref, true);
  const { context, head } = stage;
  const wish = wishOf(context);
  const maxBadSteps = context.recipe.trainer.max_bad_steps;
  const { pending } = head;
  const finish = async (position: number) => {
    await saveIfDivided(services, { ...ref, position }, context, head, position);
    await endTurnIfWanted(services, { ...ref, position });
  };
  if (pending === undefined) {
    // An earlier attempt of this activity committed it, and may have died before it returned.
    if (head.counters.badSteps >= maxBadSteps)
      throw badStepsPause(ref.runId, head.counters.badSteps, 'see the update record');
    await stage.look;
    await finish(head.position);
    return summary(head.position, context, await wish);
  }
  const iteration = head.position + 1;
  const result = await besideLook(services, stage, (signal) =>
    applied(services, { context, head, signal }, pending),
  ).catch((error: unknown) => {
    throw poisonBatch(error, ref.runId, iteration);
  });
  const { output } = result;
  const events = ports.events.count(ref.runId);
  const decided = await ports.decide(
    context.log.store,
    keys.update(ref.runId, head.term, iteration),
    updateRecord,
    { ...recordOf({ context, head }, pending, result, events.metrics), writer: recordWriter(ports) },
    (other) => other.batch === pending.digest,
  );
  context.log.appended(decided.adopted ? undefined : decided);
  events.committed();
  ports.committed(context.log, iteration);
  if (samplesResponses(context.recipe.kind))
    services.weights.committed(context, iteration, head.profile, actorOf(decided.record.components));
  sayIteration(ports, decided.record, pending.record);
  if (decided.record.outcome === 'skipped' && output.after.badSteps >= maxBadSteps)
    throw badStepsPause(ref.runId, output.after.badSteps, output.reason);
  await finish(iteration);
  return summary(iteration, context, await wish);
}

async function applied(services: StageServices, at: At, pending: PendingBatch): Promise<Applied> {
  const { ports, recompute } = services;
  const { context, head, signal } = at;
  const { log, recipe } = context;
  const parts = partsOf(recipe);
  const onProgress: WaitOptions['onProgress'] = (progress, queued) =>
    ports.live(log.runId, liveNote('update', head.position + 1, progress, queued));
  const results = await withBatch(services, at, pending.record, () =>
    forEachPart(parts, signal, (part, either) => {
      const request = requestOf(ports, at, pending, part);
      const lead = () => recompute.run(request, { signal: either, onProgress });
      return recipe.trainer.standby === 0 ? lead() : services.standbys.update(request, either, lead);
    }),
  );
  const [only] = results;
  return only !== undefined && results.length === 1 ? only : joinedUpdate(ports, pending.record, results);
}

function requestOf(
  ports: ActivityPorts,
  { context, head }: At,
  pending: PendingBatch,
  part: Part,
): JobRequest<'update'> {
  const { log, inputs } = context;
  const text = pending.record.draws.length > mostDrawsTold ? undefined : ports.recordText(pending);
  const profile = profileOfPart(head, part);
  const parentState = stateOfPart(ports, head, part);
  const save = part.part !== true && isSaveDue(context, head, head.position + 1);
  return {
    stage: 'update',
    runId: log.runId,
    at: { term: head.term, iteration: head.position },
    store: log.store,
    profile: queueOf(profile),
    needs: context.recipe.fleet.needs.trainer,
    input: { parentState, batch: pending.digest, model: inputs.model, profile, save, ...part },
    ...(text !== undefined && { batch: text }),
    isNew: head.isOwn === true,
  };
}

function isSaveDue({ recipe, iterations }: RunContext, { termRecord }: Head, iteration: number): boolean {
  // Nothing that was applied again should have to be applied a third time.
  const isLastAgain = iteration === termRecord.adopts?.until;
  // No checkpoint has the state of a standby with which the term begins.
  const isFirstOfStandby = termRecord.standby !== undefined && iteration === (termRecord.parent?.position ?? 0) + 1;
  return isLastAgain || isFirstOfStandby || isDue(iteration, recipe.trainer.save_freq) || iteration === iterations;
}

/** A manifest names all components, so those of a run that is divided are saved when the update is committed. */
async function saveIfDivided(
  services: StageServices,
  ref: RunRef,
  context: RunContext,
  head: Head,
  position: number,
): Promise<void> {
  if (partsOf(context.recipe).length > 1 && isSaveDue(context, head, position)) await checkpoint(services, ref);
}

function recordOf(
  { context, head }: Omit<At, 'signal'>,
  batch: PendingBatch,
  { output, timings }: Applied,
  events: CountedEvents['metrics'],
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
    timings: { ...updateTimings(batch.record, timings, Date.now()), ...events },
  };
}

/** What the user wants of the run, read beside the update. What is wanted later comes as a signal. */
function wishOf({ log }: RunContext): Promise<DesiredState> {
  const wish = log.status.newest().then((status) => status?.wish ?? 'run');
  wish.catch(() => {}); // who waits for it gets the error
  return wish;
}

function summary(position: number, { recipe, iterations }: RunContext, wish: DesiredState): UpdateSummary {
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
