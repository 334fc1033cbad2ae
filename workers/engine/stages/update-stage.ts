/** The stage `update`: applies a committed batch, and saves the new state where a checkpoint is due. */
import { RetryableError } from '../../../core/errors.ts';
import type { Store } from '../../../core/ports/store.ts';
import { keys } from '../../../core/records/keys.ts';
import { batchRecord } from '../../../core/records/schema.ts';
import type { BatchRecord } from '../../../core/records/schema.ts';
import type { UpdateInput, UpdateOutput } from '../../../core/wire/jobs/index.ts';
import { sha256 } from '../../../log/objects/digest.ts';
import { needRecord, storedRecord } from '../../../log/objects/records.ts';
import type { Stored } from '../../../log/objects/records.ts';
import type { EngineHost } from '../host/host.ts';
import type { JobContext } from '../job/context.ts';
import { hasApplied } from '../update/recover.ts';
import { StageTimer } from '../job/stage-timer.ts';
import { namesOf } from '../state/state.ts';
import type { RunState } from '../state/state.ts';
import { openBatch } from '../samples/stored-batch.ts';
import { applyBatch } from '../update/update.ts';

export async function update(host: EngineHost, input: UpdateInput, context: JobContext): Promise<UpdateOutput> {
  const timer = new StageTimer(context);
  const log = await host.log(context);
  const batch = await batchOf(log.store, input, context);
  // A later generation is computed because the result of an earlier one cannot be trusted.
  const known = input.generation === undefined ? await host.stateMadeBy(context, input, batch) : undefined;
  const { state, output } = known ?? (await applied(host, input, context, timer, batch));
  // The log gets the leader's state. That of a standby is the same one only in a run that is reproducible.
  const isLogged = input.standby !== true || input.profile.deterministic;
  host.standsAt(state, context, context.at.iteration + 1, isLogged);
  if (input.save)
    await timer.time('timing_s/save_checkpoint', () => saveBeside(host, state, context, context.at.iteration + 1));
  context.count('actor/perf/cpu_memory_used_gb', process.memoryUsage.rss() / 2 ** 30);
  return output;
}

/** The batch record that the job names: as its message has it, or else from the store. */
async function batchOf(store: Store, input: UpdateInput, context: JobContext): Promise<Stored<BatchRecord>> {
  const key = keys.batch(context.runId, context.at.term, context.at.iteration + 1);
  const told = new TextEncoder().encode(context.batch);
  if (sha256(told) === input.batch) return storedRecord(key, told, batchRecord);
  const batch = await needRecord(store, key, batchRecord);
  if (batch.digest === input.batch) return batch;
  throw new RetryableError('StaleJob', `${batch.key} has digest ${batch.digest}, the job names ${input.batch}`);
}

async function applied(
  host: EngineHost,
  input: UpdateInput,
  context: JobContext,
  timer: StageTimer,
  batch: Stored<BatchRecord>,
): Promise<{ readonly state: RunState; readonly output: UpdateOutput }> {
  const { key, record } = batch;
  const store = await host.store(context.store);
  const contents = await openBatch(store, context.runId, record, key);
  const state = await host.stateAt(context, input, input.parentState, input.standby === true);
  const { tag } = state;
  if (tag === undefined) throw new Error('an update begins with a clean state');
  const resultBefore = input.profile.deterministic ? undefined : await resultAt(host, state, context);
  await host.interrupt(state);
  if (input.save) host.prepareCheckpoint(state);
  const isOfCritic = input.components?.length === 1 && input.components[0] === 'critic';
  const output = await timer.time(isOfCritic ? 'timing_s/update_critic' : 'timing_s/update_actor', () =>
    applyBatch(state, batch, contents, {
      tick: (done, total) => context.progress(done, total, 'training'),
      signal: context.signal,
      ownLoss: host.own.lossIn(store),
    }),
  );
  state.noteUpdate({
    ...namesOf(batch),
    from: tag.stateDigest,
    output,
    result: keys.result(context.runId, context.jobId),
    ...(resultBefore !== undefined && { resultBefore }),
  });
  return { state, output };
}

/** Key of the result of this process that named the state at the job's position. */
async function resultAt(host: EngineHost, { madeBy }: RunState, context: JobContext): Promise<string | undefined> {
  if (madeBy === undefined) return undefined;
  return (await hasApplied(madeBy, context.at.iteration, await host.log(context))) ? madeBy.result : undefined;
}

/**
 * Resolves when the state is copied; the copy is written while the next stages run. A failed save is reported, and the
 * next save is due soon.
 */
async function saveBeside(host: EngineHost, state: RunState, context: JobContext, iteration: number): Promise<void> {
  const startedAt = performance.now();
  const { written } = await host.checkpoint(state, context, iteration);
  written.then(
    () => context.say(`checkpoint ${iteration} saved in ${((performance.now() - startedAt) / 1000).toFixed(1)} s`),
    (error: unknown) => context.say(`checkpoint ${iteration} could not be saved: ${String(error)}`),
  );
}
