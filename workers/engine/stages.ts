/** The stages that the engine's thread runs: what a job of each kind does. */
import { RetryableError } from '../../core/errors.ts';
import { batchRecord } from '../../core/records/schema.ts';
import { keys } from '../../core/records/keys.ts';
import type { Stage, StageTypes } from '../../core/wire/jobs.ts';
import type { JobMessage } from '../../core/wire/messages.ts';
import { getBlob } from '../../infra/store/blobs.ts';
import { needRecord } from '../../infra/store/records.ts';
import { decodeBatch } from '../../models/batch-tensors.ts';
import { advantage } from './advantage.ts';
import { compare } from './compare.ts';
import type { EngineHost, JobContext } from './host.ts';
import { rollout } from './rollout.ts';
import { StageTimer } from './stage-timer.ts';
import type { RunState } from './state.ts';
import { applyBatch } from './update.ts';
import { values } from './values.ts';

export type EngineStage = Exclude<Stage, 'reward'>;
type StageFunctions = {
  readonly [S in EngineStage]: (
    host: EngineHost,
    input: StageTypes[S]['input'],
    context: JobContext,
  ) => Promise<StageTypes[S]['output']>;
};

const stages: StageFunctions = {
  open: (host, input, context) => host.open(input, context),
  rollout,
  values,
  advantage,
  compare,
  update: async (host, input, context) => {
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
    const timer = new StageTimer(context);
    const isOfCritic = input.components?.length === 1 && input.components[0] === 'critic';
    const output = await timer.time(isOfCritic ? 'timing_s/update_critic' : 'timing_s/update_actor', () =>
      applyBatch(state, record.record, tensors, {
        tick: (done, total) => context.progress(done, total, 'training'),
        signal: context.signal,
        ownLoss: host.own.lossIn(log.store),
      }),
    );
    host.standsAt(state, context, context.at.iteration + 1);
    if (input.save)
      await timer.time('timing_s/save_checkpoint', () => saveBeside(host, state, context, context.at.iteration + 1));
    context.count('actor/perf/cpu_memory_used_gb', process.memoryUsage.rss() / 2 ** 30);
    return output;
  },
  checkpoint: async (host, input, context) => {
    const saved = await host.savedCheckpoint(context, input.state);
    if (saved !== undefined) return { manifest: saved };
    const state = await host.stateAt(context, input, input.state);
    return (await host.checkpoint(state, context, context.at.iteration)).written;
  },
  weights: async (host, input, context) => {
    const state = await host.stateAt(context, input, input.state);
    return { manifest: await host.publishWeights(state, context) };
  },
};

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

/** Runs the stage of a message. */
export function runStage(
  host: EngineHost,
  message: Pick<JobMessage, 'stage' | 'input'>,
  context: JobContext,
): Promise<StageTypes[EngineStage]['output']> {
  if (message.stage === 'reward') throw new Error('rewards are scored in processes of their own');
  // The stage and its input travel together in one message; TypeScript cannot see that they match.
  const stage = stages[message.stage] as (
    host: EngineHost,
    input: unknown,
    context: JobContext,
  ) => Promise<StageTypes[EngineStage]['output']>;
  return stage(host, message.input, context);
}
