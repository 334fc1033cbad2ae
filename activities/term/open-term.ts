/** The first term of a run. */
import { damage } from '../../core/records/damage.ts';
import type { Digest } from '../../core/ids.ts';
import type { BlockHash } from '../../core/parameters.ts';
import { trainedComponents } from '../../core/recipe/index.ts';
import type { Recipe } from '../../core/recipe/index.ts';
import { blockHashOf, namedBlockHash, newBlockHash } from '../../core/records/block-hash.ts';
import { actorOf, someOf } from '../../core/records/components.ts';
import { keys } from '../../core/records/keys.ts';
import { anyProfile, queueOf } from '../../core/records/profile-ids.ts';
import { recordFormat, termRecord } from '../../core/records/schema.ts';
import type { CheckpointManifest, NumericProfile, RunRecord, TermRecord } from '../../core/records/schema.ts';
import type { EngineSettings, OpenInput, OpenOutput } from '../../core/wire/jobs/index.ts';
import type { RunLog } from '../../log/run/run-log.ts';
import { liveNote } from '../live-note.ts';
import { drivenBy } from './ownership.ts';
import { forEachPart, stateOfPart } from './parts.ts';
import type { ActivityPorts } from '../ports/index.ts';
import { recordWriter } from './record-writer.ts';
import type { Recompute } from './recompute.ts';
import type { RunContexts, RunRef } from './run-context.ts';
import { shardsIn } from './saved-parts.ts';
import { engineSettings, partsOf } from '../settings.ts';
import type { Part } from '../settings.ts';

/** `auto` becomes the compute type that every worker of the pool has, so that each of them can serve the run. */
async function commonCompute(ports: ActivityPorts, settings: EngineSettings): Promise<EngineSettings> {
  if (settings.compute !== 'auto' || settings.deterministic) return settings;
  const engines = (await ports.listWorkers()).flatMap((worker) => worker.engines);
  const own = engines.filter(({ name }) => name === settings.engine);
  return own.every(({ computes }) => computes.includes('bf16')) ? settings : { ...settings, compute: 'fp32' };
}

/** Loads the base model on a trainer, or the state that a fork starts with, and opens the first term. */
export async function openTerm(
  ports: ActivityPorts,
  recompute: Recompute,
  contexts: RunContexts,
  ref: RunRef,
): Promise<{ readonly term: number }> {
  const { context, head } = await contexts.head(ref);
  if (head !== undefined) return { term: head.term };
  const { log, recipe, inputs } = context;
  const { origin } = await log.run();
  const engine = {
    ...(await commonCompute(ports, engineSettings(recipe))),
    ...namedBlockHash(await blockHashFrom(ports, log, origin)),
  };
  const openPart = async (part: Part, signal: AbortSignal, like?: NumericProfile): Promise<OpenOutput> => {
    const from = origin && (await startOf(ports, log, origin, part));
    const { output } = await recompute.run(
      {
        stage: 'open',
        runId: ref.runId,
        at: { term: 1, iteration: origin?.position ?? 0 },
        store: log.store,
        needs: context.recipe.fleet.needs.trainer,
        profile: queueOf(like ?? { engine: engine.engine, id: anyProfile }),
        input: {
          model: inputs.model,
          engine: like === undefined ? engine : { ...engine, compute: like.compute },
          ...part,
          ...(from && { from }),
        },
      },
      { signal, onProgress: (progress, queued) => ports.live(ref.runId, liveNote('open', 0, progress, queued)) },
    );
    return output;
  };
  const [main, ...others] = partsOf(recipe);
  const output = await ports.whileHeartbeating(async (signal): Promise<Opened> => {
    const first = await openPart(main, signal);
    const [like] = Object.values(first.components);
    // The parts of a run have the same arithmetic, on whichever machines.
    const rest = await forEachPart(others, signal, (part, either) => openPart(part, either, like?.profile));
    return rest.length === 0 ? first : joined(ports, recipe, [first, ...rest]);
  });
  if (origin !== undefined && output.parts !== undefined)
    await putFirstCheckpoint(ports, log, origin.position, output.stateDigest, output.parts);
  const { compute, deterministic, device, engine: name } = actorOf(output.components).profile;
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
  ports.say(
    ref.runId,
    'debug',
    `opened term 1: ${compute}${deterministic ? ' deterministic' : ''} on ${name}, ${device}`,
  );
  return { term: decided.record.term };
}

interface Opened extends Pick<OpenOutput, 'stateDigest' | 'components'> {
  /** The output of each part, when the run is divided. */
  readonly parts?: readonly OpenOutput[];
}

/** The block hash of the origin, whose state is verified by its digests; a new run has the newest. */
async function blockHashFrom(ports: ActivityPorts, { store }: RunLog, origin: RunRecord['origin']): Promise<BlockHash> {
  if (origin === undefined) return newBlockHash;
  const { runId } = origin;
  const head = await ports.openLog(store, runId).head();
  if (head === undefined) throw damage('MissingRecord', keys.term(runId, 1), 'the origin of this fork has no term');
  return blockHashOf(head.profile);
}

/** What a part of a fork starts from. */
async function startOf(
  ports: ActivityPorts,
  { store }: RunLog,
  { runId, position, stateDigest }: NonNullable<RunRecord['origin']>,
  part: Part,
): Promise<OpenInput['from']> {
  const state =
    part.part === true ? stateOfPart(ports, await ports.openLog(store, runId).at(position), part) : stateDigest;
  return { runId, iteration: position, state };
}

/** The state of a run that is divided, from those of its parts. */
function joined(
  { runStateOf }: Pick<ActivityPorts, 'runStateOf'>,
  recipe: Recipe,
  parts: readonly OpenOutput[],
): Opened {
  const found: OpenOutput['components'] = Object.assign({}, ...parts.map(({ components }) => components));
  const components = someOf(found, trainedComponents(recipe));
  return { stateDigest: runStateOf(components), components, parts };
}

/** Commits the first checkpoint of a fork that is divided: its parts have saved their shards. */
async function putFirstCheckpoint(
  ports: ActivityPorts,
  { store, runId }: RunLog,
  iteration: number,
  stateDigest: Digest,
  parts: readonly OpenOutput[],
): Promise<void> {
  const saved = await Promise.all(parts.map(({ shards }) => shardsIn(ports, store, runId, shards)));
  const components: CheckpointManifest['components'] = Object.assign({}, ...saved);
  await ports.putManifest(store, { format: recordFormat, runId, term: 1, iteration, stateDigest, components });
}
