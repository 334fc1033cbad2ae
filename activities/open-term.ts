/** The first term of a run. */
import { actorOf } from '../core/records/components.ts';
import { keys } from '../core/records/keys.ts';
import { anyProfile } from '../core/records/profile-ids.ts';
import { recordFormat, termRecord } from '../core/records/schema.ts';
import type { TermRecord } from '../core/records/schema.ts';
import type { EngineSettings } from '../core/wire/jobs.ts';
import { liveNote } from './live-note.ts';
import { drivenBy } from './ownership.ts';
import type { ActivityPorts } from './ports.ts';
import { recordWriter } from './record-writer.ts';
import type { RunContexts, RunRef } from './run-context.ts';
import { engineSettings, trains } from './settings.ts';

/** `auto` becomes the compute type that every worker of the pool has, so that each of them can serve the run. */
async function commonCompute(ports: ActivityPorts, settings: EngineSettings): Promise<EngineSettings> {
  if (settings.compute !== 'auto' || settings.deterministic) return settings;
  const engines = (await ports.listWorkers()).filter(({ roles }) => roles.some((role) => role !== 'reward'));
  const allHaveBf16 = engines.every(({ computes }) => computes === undefined || computes.includes('bf16'));
  return allHaveBf16 ? settings : { ...settings, compute: 'fp32' };
}

/** Loads the base model on a trainer, or the state that a fork starts with, and opens the first term. */
export async function openTerm(
  ports: ActivityPorts,
  contexts: RunContexts,
  ref: RunRef,
): Promise<{ readonly term: number }> {
  const { context, head } = await contexts.head(ref);
  if (head !== undefined) return { term: head.term };
  const { log, recipe, inputs } = context;
  const { origin } = await log.run();
  const engine = await commonCompute(ports, engineSettings(recipe));
  const { output } = await ports.whileHeartbeating((signal) =>
    ports.dispatcher.run(
      {
        stage: 'open',
        runId: ref.runId,
        at: { term: 1, iteration: origin?.position ?? 0 },
        store: log.store,
        profile: anyProfile,
        input: {
          model: inputs.model,
          engine,
          ...trains(recipe),
          ...(origin && { from: { runId: origin.runId, iteration: origin.position, state: origin.stateDigest } }),
        },
      },
      { signal, onProgress: (progress, queued) => ports.live(ref.runId, liveNote('open', 0, progress, queued)) },
    ),
  );
  const { compute, deterministic, isa } = actorOf(output.components).profile;
  const record: TermRecord = {
    format: recordFormat,
    runId: ref.runId,
    term: 1,
    ...(origin && { base: { position: origin.position, counters: origin.counters } }),
    startState: output.stateDigest,
    components: { ...output.components },
    revision: 1,
    owner: ports.stack,
    reason: origin === undefined ? 'start' : `fork of ${origin.runId} after iteration ${origin.position}`,
    skippedDraws: origin?.skippedDraws ?? [],
    writer: recordWriter(ports),
  };
  const decided = await ports.decide(log.store, keys.term(ref.runId, 1), termRecord, record, (other) => {
    if (other.owner !== record.owner) throw drivenBy(other, record.owner);
    return other.startState === record.startState;
  });
  if (origin !== undefined) await log.store.remove(keys.pin(origin.runId, ref.runId));
  ports.say(ref.runId, 'debug', `opened term 1: ${compute}${deterministic ? ' deterministic' : ''} on ${isa}`);
  return { term: decided.record.term };
}
