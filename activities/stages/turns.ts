/**
 * Turns of runs that share a trainer (`trainer.share: turns`). A run for whose trainer another one waits saves its
 * state, publishes the weights for its rollouts, and gives the trainer up. It samples and scores while the other one
 * trains, and asks for the trainer again with its next job, behind those that wait.
 *
 * The state is saved before it leaves the memory, so a turn costs one load and never a replay.
 */
import { samplesResponses } from '../../core/run-kinds.ts';
import { headOf } from './begin-stage.ts';
import { checkpoint } from './checkpoint.ts';
import type { StageServices } from '../services.ts';
import type { RunRef } from '../term/run-context.ts';
import type { At } from '../sampling/rollouts.ts';

/** Ends the turn of the run after a committed iteration, if the run takes turns and another one waits. */
export async function endTurnIfWanted(services: StageServices, ref: RunRef): Promise<void> {
  if (!services.ports.dispatcher.isWanted(ref.runId)) return;
  const head = await headOf(services.contexts, ref);
  if (endsAt(head)) await services.ports.whileHeartbeating((signal) => endTurn(services, ref, { ...head, signal }));
}

/** Does the work of a stage that needs no trainer. Another run that asks for the trainer meanwhile gets it. */
export async function withoutTrainer<T>(
  services: StageServices,
  ref: RunRef,
  at: At,
  work: () => Promise<T>,
): Promise<T> {
  if (!endsAt(at)) return work();
  const { ports } = services;
  const done = new AbortController();
  const signal = AbortSignal.any([at.signal, done.signal]);
  const turn = ports.dispatcher
    .untilWanted(ref.runId, signal)
    .then((wanted) => (wanted ? endTurn(services, ref, { ...at, signal }) : undefined))
    .catch((error: unknown) => {
      if (!signal.aborted)
        ports.say(ref.runId, 'warn', `keeps its trainer although another run waits: ${String(error)}`);
    });
  try {
    return await work();
  } finally {
    done.abort();
    await turn;
  }
}

/** May the run give its trainer up at this iteration? */
function endsAt({ context: { recipe, iterations }, head: { position } }: Omit<At, 'signal'>): boolean {
  const { share, turn_iterations: every } = recipe.trainer;
  return share === 'turns' && position % every === 0 && position < iterations;
}

async function endTurn({ weights, ...services }: StageServices, ref: RunRef, at: At): Promise<void> {
  const { ports } = services;
  const { context, head, signal } = at;
  await checkpoint({ weights, ...services }, { ...ref, position: head.position });
  if (samplesResponses(context.recipe.kind)) await weights.beforeTurnEnds(context, head, signal);
  ports.dispatcher.endTurn(ref.runId);
  ports.say(ref.runId, 'info', `gives its trainer to a run that waits, after iteration ${head.position}`);
}
