/** A checkpoint as a Hugging Face folder, or as one of peft. Of its shards only the weights are read, one at a time. */
import { join } from 'node:path';
import { TerminalError } from '../../core/errors.ts';
import { parseStoredRecipe } from '../../core/recipe/index.ts';
import { actorOf, mainName } from '../../core/records/components.ts';
import type { CheckpointManifest, ComponentCheckpoint } from '../../core/records/schema.ts';
import { bestCheckpoint } from '../../log/run/best-checkpoint.ts';
import { streamBlob } from '../../log/objects/blobs.ts';
import { blockHashOf } from '../../core/records/block-hash.ts';
import { blockHasher } from '../../log/objects/block-hasher.ts';
import { treeDigest } from '../../log/objects/digest.ts';
import { modelFolder } from '../../log/inputs/model-facts.ts';
import { pinPosition } from '../../log/run/retention-log.ts';
import type { RunLog } from '../../log/run/run-log.ts';
import { isNamedByLineage } from '../../log/run/state-names.ts';
import type { ApiContext } from '../context.ts';
import { chooseCheckpoint, retentionFloor } from './list.ts';
import { checkpointElements, damagedCheckpoint, readShard } from '../../models/checkpoint.ts';
import { scoreConfig } from '../../models/config.ts';
import { isAdapterFolder, mergedTensors, readLoraConfig, saveAdapter } from '../../models/lora.ts';
import { filling, openSafetensors } from '../../models/safetensors.ts';
import type { FloatTensor } from '../../models/safetensors.ts';
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
  const trained = await weightsOf(manifest, log);
  const isAdapter = await isAdapterFolder(text);
  if (isAdapter && !merged) {
    const stored = storedAs(dtype, 'float32');
    const { path, revision } = parseStoredRecipe(recipe).model;
    // A folder's place on the machine that started the run is not in its records.
    const isHub = !/^[./~]/.test(path);
    const base = isHub ? path : await modelFolder(log.store, inputs.reference ?? inputs.model, cache);
    const task = isRewardModel(manifest) ? 'SEQ_CLS' : 'CAUSAL_LM';
    const about = { base, revision: isHub ? revision : null, task } as const;
    await saveAdapter(folder, { from: text, ...about, tensors: trained, dtype: stored });
    return { dtype: stored, isAdapter };
  }
  const model = await modelFolder(log.store, inputs.model, cache);
  const tensors = isAdapter ? await withoutAdapter(model, trained) : trained;
  const baseConfig = await readConfigJson(model);
  const config = isRewardModel(manifest) ? scoreConfig(baseConfig) : baseConfig;
  const stored = storedAs(dtype, dtypeOf(config));
  await saveHuggingFace(folder, { config, tensors, dtype: stored, companions: model });
  return { dtype: stored, isAdapter: false };
}

/** The tensors of the whole model: the adapter goes into the weights of its base. */
async function withoutAdapter(folder: string, adapter: readonly FloatTensor[]): Promise<FloatTensor[]> {
  const lora = await readLoraConfig(folder);
  const base = await openSafetensors(join(folder, lora.base));
  return mergedTensors(base, lora, adapter).finally(() => base.close());
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

/** The parameters over one flat buffer, which hashes to what the manifest says. */
async function weightsOf(manifest: CheckpointManifest, log: RunLog): Promise<FloatTensor[]> {
  const { store, runId } = log;
  const actor = actorOf(manifest.components);
  const flat = new Float32Array(checkpointElements(actor));
  for (const shard of actor.shards) {
    if (!shard.tensors.some(({ name }) => name === 'weights')) continue;
    await readShard(shard, actor.parts, streamBlob(store, runId, shard.blob), ({ part, start, end }) =>
      part === 'weights' ? filling(flat.subarray(start, end)) : () => {},
    );
  }
  const digest = treeDigest(flat, await blockHasher(blockHashOf(actor)));
  if (digest !== (await contentOf(actor, log))) throw damagedCheckpoint(manifest, `its weights hash to ${digest}`);
  let offset = 0;
  return actor.parameters.map(({ name, shape }) => {
    const size = shape.reduce((product, length) => product * length, 1);
    if (offset + size > flat.length)
      throw new TerminalError('DamagedCheckpoint', `parameter ${name} lies outside the weights`);
    const data = flat.subarray(offset, (offset += size));
    return { name, shape, data };
  });
}
