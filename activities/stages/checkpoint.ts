import { damage } from '../../core/damage.ts';
import { keys } from '../../core/records/keys.ts';
import type { JobRequest } from '../../infra/nats/dispatcher.ts';
import type { WaitOptions } from '../../infra/nats/wait-session.ts';
import { liveNote } from '../live-note.ts';
import type { RunRef } from '../run-context.ts';
import type { At } from '../sampling/rollouts.ts';
import { trains } from '../settings.ts';
import { headOf } from './head-of.ts';
import type { StageServices } from './services.ts';

/** Saves the state at the head as a checkpoint. Returns at once when it is saved already. */
export async function checkpoint(services: StageServices, ref: RunRef): Promise<{ readonly manifest: string }> {
  const { context, head } = await headOf(services.contexts, ref);
  return services.ports.whileHeartbeating((signal) => saved(services, { context, head, signal }));
}

/** The result of an earlier job may name a manifest that was lost since. Then it is written again. */
async function saved({ ports, recompute }: StageServices, at: At): Promise<{ readonly manifest: string }> {
  const { head, signal } = at;
  const { log } = at.context;
  const request = requestOf(at);
  const onProgress: WaitOptions['onProgress'] = (progress, queued) =>
    ports.live(log.runId, liveNote('checkpoint', head.position, progress, queued));
  for (;;) {
    const { output, jobId } = await recompute.run(request, { signal, onProgress });
    if ((await log.checkpointOf(head.position, head.stateDigest)) !== undefined) return output;
    const lost = damage(
      'MissingRecord',
      keys.checkpoint(log.runId, head.position, head.stateDigest),
      'expected the saved checkpoint, found no readable one',
    );
    if (!recompute.again(request, jobId, lost.message)) throw lost;
  }
}

function requestOf({ context, head }: At): JobRequest<'checkpoint'> {
  const { log, inputs, recipe } = context;
  const { profile } = head;
  return {
    stage: 'checkpoint',
    runId: log.runId,
    at: { term: head.term, iteration: head.position },
    store: log.store,
    profile: profile.id,
    input: { iteration: head.position, state: head.stateDigest, model: inputs.model, profile, ...trains(recipe) },
  };
}
