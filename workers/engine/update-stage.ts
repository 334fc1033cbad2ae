/** The stage `update`: applies a committed batch, and saves the new state where a checkpoint is due. */
import { RetryableError } from '../../core/errors.ts';
import { keys } from '../../core/records/keys.ts';
import { batchRecord } from '../../core/records/schema.ts';
import type { UpdateInput, UpdateOutput } from '../../core/wire/jobs.ts';
import { getBlob } from '../../infra/store/blobs.ts';
import { needRecord } from '../../infra/store/records.ts';
import { decodeBatch } from '../../models/batch-tensors.ts';
import type { EngineHost, JobContext } from './host.ts';
import { StageTimer } from './stage-timer.ts';
import type { RunState } from './state.ts';
import { applyBatch } from './update.ts';

export async function update(host: EngineHost, input: UpdateInput, context: JobContext): Promise<UpdateOutput> {
  const timer = new StageTimer(context);
  // A later generation is computed because the result of an earlier one cannot be trusted.
  const known = input.generation === undefined ? await host.stateMadeBy(context, input, input) : undefined;
  const { state, output } = known ?? (await applied(host, input, context, timer));
  host.standsAt(state, context, context.at.iteration + 1);
  if (input.save)
    await timer.time('timing_s/save_checkpoint', () => saveBeside(host, state, context, context.at.iteration + 1));
  context.count('actor/perf/cpu_memory_used_gb', process.memoryUsage.rss() / 2 ** 30);
  return output;
}

async function applied(
  host: EngineHost,
  input: UpdateInput,
  context: JobContext,
  timer: StageTimer,
): Promise<{ readonly state: RunState; readonly output: UpdateOutput }> {
  const log = await host.log(context);
  const record = await needRecord(
    log.store,
    keys.batch(context.runId, context.at.term, context.at.iteration + 1),
    batchRecord,
  );
  if (record.digest !== input.batch)
    throw new RetryableError('StaleJob', `${record.key} has digest ${record.digest}, the job names ${input.batch}`);
  const tensors = decodeBatch(await getBlob(log.store, context.runId, record.record.tensors), record.key);
  const state = await host.stateAt(context, input, input.parentState);
  await host.interrupt(state);
  if (input.save) host.prepareCheckpoint(state);
  const isOfCritic = input.components?.length === 1 && input.components[0] === 'critic';
  const output = await timer.time(isOfCritic ? 'timing_s/update_critic' : 'timing_s/update_actor', () =>
    applyBatch(state, record.record, tensors, {
      tick: (done, total) => context.progress(done, total, 'training'),
      signal: context.signal,
      ownLoss: host.own.lossIn(log.store),
    }),
  );
  const { batch, parentState } = input;
  state.noteUpdate({ batch, parentState, output });
  return { state, output };
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
