/** The stages that the engine's thread runs: what a job of each kind does. */
import type { Stage, StageTypes } from '../../../core/wire/jobs/index.ts';
import type { JobMessage } from '../../../core/wire/messages.ts';
import { advantage } from '../batch/advantage.ts';
import { compare } from './compare.ts';
import type { EngineHost } from '../host/host.ts';
import type { JobContext } from '../job/context.ts';
import { rollout } from '../rollout/rollout.ts';
import { update } from './update-stage.ts';
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
  update,
  checkpoint: async (host, input, context) => {
    const saved = await host.savedCheckpoint(context, input.state);
    if (saved !== undefined) return { manifest: saved };
    const state = await host.stateAt(context, input, input.state);
    return (await host.checkpoint(state, context, context.at.iteration)).written;
  },
  weights: async (host, input, context) => {
    const state = await host.stateAt(context, input, input.state);
    return { manifest: await host.publishWeights(state, context, input.publication) };
  },
};

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
