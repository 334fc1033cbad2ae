/** A checkpoint as a Hugging Face folder. Only the weights are read, a shard at a time. */
import { TerminalError } from '../../core/errors.ts';
import type { CheckpointManifest } from '../../core/records/schema.ts';
import { streamBlob } from '../../infra/store/blobs.ts';
import { treeDigest } from '../../infra/store/digest.ts';
import { modelFolder } from '../../infra/store/model-facts.ts';
import type { RunLog } from '../../infra/store/run-log.ts';
import { checkpointElements, damagedCheckpoint, readShard } from '../../models/checkpoint.ts';
import { filling } from '../../models/safetensors.ts';
import type { FloatTensor } from '../../models/safetensors.ts';
import { readConfigJson, saveHuggingFace } from '../../models/weights.ts';

export type ExportDtype = 'auto' | 'fp32' | 'bf16';

export interface ExportOptions {
  readonly log: RunLog;
  readonly manifest: CheckpointManifest;
  readonly folder: string;
  /** auto: as the base model is stored; fp32 where that is neither. */
  readonly dtype: ExportDtype;
  /** Folder for copies of models from remote stores. */
  readonly cache: string;
}

/** Returns the type of the tensors. Throws TerminalError `DamagedCheckpoint`, InvalidInputError for a folder that is not empty. */
export async function exportCheckpoint({
  log,
  manifest,
  folder,
  dtype,
  cache,
}: ExportOptions): Promise<'float32' | 'bfloat16'> {
  const base = await modelFolder(log.store, (await log.revision()).inputs.model, cache);
  const config = await readConfigJson(base);
  const stored = dtype === 'auto' ? dtypeOf(config) : dtype === 'bf16' ? 'bfloat16' : 'float32';
  await saveHuggingFace(folder, { config, tensors: await weightsOf(manifest, log), dtype: stored, companions: base });
  return stored;
}

function dtypeOf(config: Readonly<Record<string, unknown>>): 'float32' | 'bfloat16' {
  return String(config['dtype'] ?? config['torch_dtype']).replace(/^torch\./, '') === 'bfloat16'
    ? 'bfloat16'
    : 'float32';
}

/** The parameters over one flat buffer, which hashes to what the manifest says. */
async function weightsOf(manifest: CheckpointManifest, { store, runId }: RunLog): Promise<FloatTensor[]> {
  const flat = new Float32Array(checkpointElements(manifest));
  for (const shard of manifest.shards) {
    if (!shard.tensors.some(({ name }) => name === 'weights')) continue;
    await readShard(shard, streamBlob(store, runId, shard.blob), ({ part, start, end }) =>
      part === 'weights' ? filling(flat.subarray(start, end)) : () => {},
    );
  }
  const digest = treeDigest(flat);
  if (digest !== manifest.weightsDigest) throw damagedCheckpoint(manifest, `its weights hash to ${digest}`);
  let offset = 0;
  return manifest.parameters.map(({ name, shape }) => {
    const size = shape.reduce((product, length) => product * length, 1);
    if (offset + size > flat.length)
      throw new TerminalError('DamagedCheckpoint', `parameter ${name} lies outside the weights`);
    const data = flat.subarray(offset, (offset += size));
    return { name, shape, data };
  });
}
