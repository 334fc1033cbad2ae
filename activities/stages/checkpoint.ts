import { damage, isDamage } from '../../core/records/damage.ts';
import type { Components } from '../../core/records/components.ts';
import { keys } from '../../core/records/keys.ts';
import { queueOf } from '../../core/records/profile-ids.ts';
import { recordFormat } from '../../core/records/schema.ts';
import type { CheckpointManifest, ComponentCheckpoint } from '../../core/records/schema.ts';
import type { JobRequest, WaitOptions } from '../../core/ports/jobs.ts';
import { liveNote } from '../live-note.ts';
import { forEachPart, profileOfPart, stateOfPart } from '../term/parts.ts';
import type { ActivityPorts } from '../ports/index.ts';
import type { RunRef } from '../term/run-context.ts';
import type { At } from '../sampling/rollouts.ts';
import { shardsIn } from '../term/saved-parts.ts';
import { partsOf } from '../settings.ts';
import type { Part } from '../settings.ts';
import { headOf } from './begin-stage.ts';
import type { StageServices } from '../services.ts';

/** Saves the state at the head as a checkpoint. Returns at once when it is saved already. */
export async function checkpoint(services: StageServices, ref: RunRef): Promise<{ readonly manifest: string }> {
  const { context, head } = await headOf(services.contexts, ref);
  const [main, ...others] = partsOf(context.recipe);
  return services.ports.whileHeartbeating((signal) =>
    others.length === 0
      ? saved(services, { context, head, signal }, main)
      : savedInParts(services, { context, head, signal }, [main, ...others]),
  );
}

/** The result of an earlier job may name a manifest that was lost since. Then it is written again. */
async function saved({ ports, recompute }: StageServices, at: At, whole: Part): Promise<{ readonly manifest: string }> {
  const { head, signal } = at;
  const { log } = at.context;
  const request = requestOf(ports, at, whole);
  const key = keys.checkpoint(log.runId, head.position, head.stateDigest);
  for (;;) {
    const { output, jobId } = await recompute.run(request, { signal, onProgress: noteOf(ports, at) });
    if ((await log.checkpoints.manifestOf(head.position, head.stateDigest)) !== undefined)
      return { manifest: output.manifest ?? key };
    const lost = damage('MissingRecord', key, 'expected the saved checkpoint, found no readable one');
    if (!recompute.again(request, jobId, lost.message)) throw lost;
  }
}

/** Every part writes its shards, then one manifest names them all. */
async function savedInParts(
  services: StageServices,
  at: At,
  parts: readonly Part[],
): Promise<{ readonly manifest: string }> {
  const { head, signal } = at;
  const { log } = at.context;
  const known = await log.checkpoints.manifestOf(head.position, head.stateDigest);
  if (known !== undefined) return { manifest: known.key };
  const saves = await forEachPart(parts, signal, (part, either) =>
    savedPart(services, { ...at, signal: either }, part),
  );
  const components: CheckpointManifest['components'] = Object.assign({}, ...saves);
  const manifest: CheckpointManifest = {
    format: recordFormat,
    runId: log.runId,
    term: head.term,
    iteration: head.position,
    stateDigest: head.stateDigest,
    components,
  };
  return { manifest: await services.ports.putManifest(log.store, manifest) };
}

/** The shards of an earlier job may have been removed since: then they are written again. */
async function savedPart(
  { ports, recompute }: StageServices,
  at: At,
  part: Part,
): Promise<Components<ComponentCheckpoint>> {
  const { store, runId } = at.context.log;
  const request = requestOf(ports, at, part);
  for (;;) {
    const { output, jobId } = await recompute.run(request, { signal: at.signal, onProgress: noteOf(ports, at) });
    try {
      return await shardsIn(ports, store, runId, output.shards);
    } catch (error) {
      if (!isDamage(error) || !recompute.again(request, jobId, error.message)) throw error;
    }
  }
}

const noteOf =
  (ports: ActivityPorts, { context, head }: At): NonNullable<WaitOptions['onProgress']> =>
  (progress, queued) =>
    ports.live(context.log.runId, liveNote('checkpoint', head.position, progress, queued));

function requestOf(ports: ActivityPorts, { context, head }: At, part: Part): JobRequest<'checkpoint'> {
  const { log, inputs } = context;
  const profile = profileOfPart(head, part);
  return {
    stage: 'checkpoint',
    runId: log.runId,
    at: { term: head.term, iteration: head.position },
    store: log.store,
    profile: queueOf(profile),
    needs: context.recipe.fleet.needs.trainer,
    input: { iteration: head.position, state: stateOfPart(ports, head, part), model: inputs.model, profile, ...part },
  };
}
