/**
 * Turns of runs that share a trainer (`trainer.share: turns`). After an iteration, a run for whose trainer another one waits
 * saves its state, publishes the weights for its next rollouts, and gives the trainer up. It samples and scores while the
 * other one trains, and asks for the trainer again with its next job, behind those that wait.
 *
 * The state is saved before it leaves the memory, so a turn costs one load and never a replay.
 */
import { samplesResponses } from '../core/run-kinds.ts';
import type { RunRef } from './run-context.ts';
import { checkpoint } from './stages/checkpoint.ts';
import { headOf } from './stages/head-of.ts';
import type { StageServices } from './stages/services.ts';

/** After a committed iteration: ends the turn of the run, if it takes turns and another one waits. */
export async function endTurnIfWanted(
  services: StageServices,
  ref: RunRef & { readonly position: number },
): Promise<void> {
  const { ports, contexts, weights } = services;
  const { context, head } = await headOf(contexts, ref);
  const { recipe, iterations } = context;
  const { share, turn_iterations: every } = recipe.trainer;
  if (share !== 'turns' || ref.position % every !== 0 || ref.position >= iterations) return;
  if (!(await ports.listWorkers()).some(({ lease, wanted }) => lease === ref.runId && wanted === true)) return;
  await checkpoint(services, ref);
  if (samplesResponses(recipe.kind))
    await ports.whileHeartbeating((signal) => weights.beforeTurnEnds(context, head, signal));
  ports.dispatcher.endTurn(ref.runId);
  ports.say(ref.runId, 'info', `gives its trainer to a run that waits, after iteration ${ref.position}`);
}
