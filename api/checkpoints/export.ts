/** A checkpoint as a Hugging Face folder. Only the weights are read, a shard at a time. */
import { join } from 'node:path';
import { TerminalError } from '../../core/errors.ts';
import { actorOf, mainName } from '../../core/records/components.ts';
import type { CheckpointManifest } from '../../core/records/schema.ts';
import { bestCheckpoint } from '../../log/run/best-checkpoint.ts';
import { streamBlob } from '../../log/objects/blobs.ts';
import { blockHashOf } from '../../core/records/block-hash.ts';
import { blockHasher } from '../../log/objects/block-hasher.ts';
import { treeDigest } from '../../log/objects/digest.ts';
import { modelFolder } from '../../log/inputs/model-facts.ts';
import { pinPosition } from '../../log/run/retention-log.ts';
import type { RunLog } from '../../log/run/run-log.ts';
import type { ApiContext } from '../context.ts';
import { chooseCheckpoint, retentionFloor } from './list.ts';
import { checkpointElements, damagedCheckpoint, readShard } from '../../models/checkpoint.ts';
import { scoreConfig } from '../../models/config.ts';
import { filling } from '../../models/safetensors.ts';
import type { FloatTensor } from '../../models/safetensors.ts';
import { readConfigJson, saveHuggingFace } from '../../models/folder.ts';

export type ExportDtype = 'auto' | 'fp32' | 'bf16';

/** One that takes longer has died. */
const exportMs = 6 * 3_600_000;

export interface PolicyExport {
  readonly manifest: CheckpointManifest;
  readonly dtype: 'float32' | 'bfloat16';
}

/**
 * Writes the policy (or the reward model of a run of kind rm) after an iteration, the newest checkpoint's unless one is
 * named, as a Hugging Face folder. `best`: by `trainer.best_metric`. Throws TerminalError `NotFound` for an iteration
 * without a checkpoint, `DamagedCheckpoint`, InvalidInputError when anything but an empty folder is there.
 */
export async function exportPolicy(
  log: RunLog,
  {
    folder,
    iteration,
    dtype = 'auto',
  }: { readonly folder: string; readonly iteration?: number | 'best' | undefined; readonly dtype?: ExportDtype },
  { home }: Pick<ApiContext, 'home'>,
): Promise<PolicyExport> {
  const { record: manifest } = await chooseCheckpoint(log, iteration);
  const unpin = await keepFor(log, manifest.iteration);
  const options = { log, manifest, folder, dtype, cache: join(home, 'cache') };
  return { manifest, dtype: await exportCheckpoint(options).finally(unpin) };
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
  /** Folder for copies of models from remote stores. */
  readonly cache: string;
}

/**
 * Returns the type of the tensors. Throws TerminalError `DamagedCheckpoint`, InvalidInputError when anything but an
 * empty folder is there.
 */
async function exportCheckpoint({
  log,
  manifest,
  folder,
  dtype,
  cache,
}: ExportOptions): Promise<'float32' | 'bfloat16'> {
  const base = await modelFolder(log.store, (await log.revision()).inputs.model, cache);
  const baseConfig = await readConfigJson(base);
  const config = isRewardModel(manifest) ? scoreConfig(baseConfig) : baseConfig;
  const stored = dtype === 'auto' ? dtypeOf(config) : dtype === 'bf16' ? 'bfloat16' : 'float32';
  await saveHuggingFace(folder, { config, tensors: await weightsOf(manifest, log), dtype: stored, companions: base });
  return stored;
}

/** The reward model beside a policy (PRIME's) is not exported. */
const isRewardModel = ({ components }: CheckpointManifest): boolean => mainName(components) === 'rewardModel';

function dtypeOf(config: Readonly<Record<string, unknown>>): 'float32' | 'bfloat16' {
  return String(config['dtype'] ?? config['torch_dtype']).replace(/^torch\./, '') === 'bfloat16'
    ? 'bfloat16'
    : 'float32';
}

/** The parameters over one flat buffer, which hashes to what the manifest says. */
async function weightsOf(manifest: CheckpointManifest, { store, runId }: RunLog): Promise<FloatTensor[]> {
  const actor = actorOf(manifest.components);
  const flat = new Float32Array(checkpointElements(actor));
  for (const shard of actor.shards) {
    if (!shard.tensors.some(({ name }) => name === 'weights')) continue;
    await readShard(shard, actor.parts, streamBlob(store, runId, shard.blob), ({ part, start, end }) =>
      part === 'weights' ? filling(flat.subarray(start, end)) : () => {},
    );
  }
  const digest = treeDigest(flat, await blockHasher(blockHashOf(actor)));
  if (digest !== actor.weightsDigest) throw damagedCheckpoint(manifest, `its weights hash to ${digest}`);
  let offset = 0;
  return actor.parameters.map(({ name, shape }) => {
    const size = shape.reduce((product, length) => product * length, 1);
    if (offset + size > flat.length)
      throw new TerminalError('DamagedCheckpoint', `parameter ${name} lies outside the weights`);
    const data = flat.subarray(offset, (offset += size));
    return { name, shape, data };
  });
}
