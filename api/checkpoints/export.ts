/** A checkpoint as a Hugging Face folder, or as one of peft. Of its shards only the weights are read, one at a time. */
import { join } from 'node:path';
import { parseStoredRecipe } from '../../core/recipe/index.ts';
import { actorOf, mainName } from '../../core/records/components.ts';
import type { CheckpointManifest, ComponentCheckpoint } from '../../core/records/schema.ts';
import { bestCheckpoint } from '../../log/run/best-checkpoint.ts';
import { blockHashOf } from '../../core/records/block-hash.ts';
import { blockHasher } from '../../log/objects/block-hasher.ts';
import { TreeDigest } from '../../log/objects/digest.ts';
import { modelFolder } from '../../log/inputs/model-facts.ts';
import { pinPosition } from '../../log/run/retention-log.ts';
import type { RunLog } from '../../log/run/run-log.ts';
import { isNamedByLineage } from '../../log/run/state-names.ts';
import type { ApiContext } from '../context.ts';
import { chooseCheckpoint, retentionFloor } from './list.ts';
import { streamPart } from './part-stream.ts';
import { checkpointElements, damagedCheckpoint } from '../../models/checkpoint.ts';
import { scoreConfig } from '../../models/config.ts';
import { isAdapterFolder, mergedTensors, readLoraConfig, saveAdapter } from '../../models/lora.ts';
import { floats, gathered, openSafetensors } from '../../models/safetensors.ts';
import type { FloatTensor, NamedShape, TensorPiece, TensorStream } from '../../models/safetensors.ts';
import { readConfigJson, saveHuggingFace } from '../../models/folder.ts';

export type ExportDtype = 'auto' | 'fp32' | 'bf16';

/** One that takes longer has died. */
const exportMs = 6 * 3_600_000;

export interface PolicyExport {
  readonly manifest: CheckpointManifest;
  readonly dtype: 'float32' | 'bfloat16';
  /** The folder has an adapter of the base that the recipe names, and not a whole model. */
  readonly isAdapter: boolean;
}

/**
 * Writes the policy (or the reward model of a run of kind rm) after an iteration, the newest checkpoint's unless one is
 * named, as a Hugging Face folder. `best`: by `trainer.best_metric`. `merged`: a trained adapter goes into the weights
 * of its base. Throws TerminalError `NotFound` for an iteration without a checkpoint, `DamagedCheckpoint`,
 * InvalidInputError when anything but an empty folder is there.
 */
export async function exportPolicy(
  log: RunLog,
  {
    folder,
    iteration,
    dtype = 'auto',
    merged = false,
  }: {
    readonly folder: string;
    readonly iteration?: number | 'best' | undefined;
    readonly dtype?: ExportDtype;
    readonly merged?: boolean;
  },
  { home }: Pick<ApiContext, 'home'>,
): Promise<PolicyExport> {
  const { record: manifest } = await chooseCheckpoint(log, iteration);
  const unpin = await keepFor(log, manifest.iteration);
  const options = { log, manifest, folder, dtype, merged, cache: join(home, 'cache') };
  return { manifest, ...(await exportCheckpoint(options).finally(unpin)) };
}

/**
 * Keeps the checkpoint until the returned function is called. The best one may lie below the floor, where nothing can
 * be pinned: it stays until there is a better one, and for a grace period after that.
 */
async function keepFor(log: RunLog, position: number): Promise<() => Promise<void>> {
  if (position < (await retentionFloor(log)) && (await bestCheckpoint(log))?.iteration === position)
    return async () => {};
  return pinPosition(log, { position, why: 'an export', forMs: exportMs }, () => new Date());
}

export interface ExportOptions {
  readonly log: RunLog;
  readonly manifest: CheckpointManifest;
  readonly folder: string;
  /** auto: as the base model is stored; fp32 where that is neither. */
  readonly dtype: ExportDtype;
  readonly merged: boolean;
  /** Folder for copies of models from remote stores. */
  readonly cache: string;
}

/** Throws TerminalError `DamagedCheckpoint`, InvalidInputError when anything but an empty folder is there. */
async function exportCheckpoint(options: ExportOptions): Promise<Omit<PolicyExport, 'manifest'>> {
  const { log, manifest, folder, dtype, merged, cache } = options;
  const { inputs, recipe } = await log.revision();
  const text = await modelFolder(log.store, inputs.model, cache, 'text');
  const trained = trainedTensors(manifest, log);
  const isAdapter = await isAdapterFolder(text);
  if (isAdapter && !merged) {
    const stored = storedAs(dtype, 'float32');
    const { path, revision } = parseStoredRecipe(recipe).model;
    // A folder's place on the machine that started the run is not in its records.
    // peft looks names up on Hugging Face alone.
    const isHub = !/^(?:[./~]|modelscope:)/.test(path);
    const base = isHub ? path : await modelFolder(log.store, inputs.reference ?? inputs.model, cache);
    const task = isRewardModel(manifest) ? 'SEQ_CLS' : 'CAUSAL_LM';
    const about = { base, revision: isHub ? revision : null, task } as const;
    await saveAdapter(folder, { from: text, ...about, tensors: trained, dtype: stored });
    return { dtype: stored, isAdapter };
  }
  const model = await modelFolder(log.store, inputs.model, cache);
  const baseConfig = await readConfigJson(model);
  const config = isRewardModel(manifest) ? scoreConfig(baseConfig) : baseConfig;
  const stored = storedAs(dtype, dtypeOf(config));
  const save = (tensors: TensorStream) =>
    saveHuggingFace(folder, { config, tensors, dtype: stored, companions: model });
  await (isAdapter ? withoutAdapter(model, await gathered(trained), save) : save(trained));
  return { dtype: stored, isAdapter: false };
}

/** Saves the whole model: the adapter goes into the weights of its base. */
async function withoutAdapter(
  folder: string,
  adapter: readonly FloatTensor[],
  save: (tensors: TensorStream) => Promise<void>,
): Promise<void> {
  const lora = await readLoraConfig(folder);
  const base = await openSafetensors(join(folder, lora.base));
  try {
    await save(mergedTensors(base, lora, adapter));
  } finally {
    await base.close();
  }
}

const storedAs = (dtype: ExportDtype, auto: PolicyExport['dtype']): PolicyExport['dtype'] =>
  dtype === 'auto' ? auto : dtype === 'bf16' ? 'bfloat16' : 'float32';

/** The reward model beside a policy (PRIME's) is not exported. */
const isRewardModel = ({ components }: CheckpointManifest): boolean => mainName(components) === 'rewardModel';

function dtypeOf(config: Readonly<Record<string, unknown>>): 'float32' | 'bfloat16' {
  return String(config['dtype'] ?? config['torch_dtype']).replace(/^torch\./, '') === 'bfloat16'
    ? 'bfloat16'
    : 'float32';
}

/** Digest of the weights as they are in the shards. A state that is named by its lineage may be published otherwise. */
async function contentOf(component: ComponentCheckpoint, log: RunLog): Promise<string | undefined> {
  if (!(await isNamedByLineage(log, component))) return component.weightsDigest;
  return component.parts.find(({ name }) => name === 'weights')?.digest;
}

/**
 * The trained parameters, read from the shards as they are sent. Throws TerminalError `DamagedCheckpoint` after the
 * last value when they do not hash to what the manifest says.
 */
function trainedTensors(manifest: CheckpointManifest, log: RunLog): TensorStream {
  const actor = actorOf(manifest.components);
  const weights = actor.parts.find(({ name }) => name === 'weights');
  const elements = checkpointElements(actor);
  if (weights?.elements !== elements)
    throw damagedCheckpoint(manifest, `its parameters have ${elements} elements, its weights ${weights?.elements}`);
  return {
    shapes: actor.parameters,
    send: async (take) => {
      const tree = new TreeDigest(4 * elements, await blockHasher(blockHashOf(actor)));
      const values = floats(elements, (start, some) => byParameter(actor.parameters, start, some, take));
      await streamPart(log, manifest, actor, weights, async (bytes) => {
        tree.add(bytes);
        await values(bytes);
      });
      const digest = tree.root();
      if (digest !== (await contentOf(actor, log))) throw damagedCheckpoint(manifest, `its weights hash to ${digest}`);
    },
  };
}

/** Cuts values of the flat weights, from element `start` on, into those of each parameter. */
async function byParameter(
  parameters: readonly NamedShape[],
  start: number,
  values: Float32Array,
  take: (piece: TensorPiece) => Promise<void>,
): Promise<void> {
  let first = 0;
  for (const { name, shape } of parameters) {
    const last = first + shape.reduce((product, length) => product * length, 1);
    const [low, high] = [Math.max(first, start), Math.min(last, start + values.length)];
    if (low < high) await take({ name, start: low - first, values: values.subarray(low - start, high - start) });
    first = last;
  }
}
