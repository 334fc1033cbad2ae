/** Records a batch by a short run, and writes what the other side reads of it. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { at } from '../../../core/at.ts';
import { actorOf } from '../../../core/records/components.ts';
import type { BatchRecord, LossSettings } from '../../../core/records/schema.ts';
import { getBlob } from '../../../log/objects/blobs.ts';
import type { RunLog } from '../../../log/run/run-log.ts';
import { decodeBatch } from '../../../models/batch-tensors.ts';
import type { BatchTensors } from '../../../models/batch-tensors.ts';
import { readDecoderSpec, readValueSpec } from '../../../native/model/config.ts';
import { encodeSafetensors } from '../../../models/safetensors.ts';
import { createTrainer } from '../../../native/index.ts';
import { checkpointSource } from '../../../workers/engine/state/checkpoint.ts';
import { NativePolicy } from '../../../workers/engine/engines/native/policy.ts';
import { completedRun } from '../completed-run.ts';
import { example } from '../curves/settings.ts';
import { common } from './batches.ts';
import type { RecordedBatch } from './batches.ts';

/** A component after the update, in fp32. */
export interface Model {
  readonly policy: NativePolicy;
  readonly loss: LossSettings;
}

export interface Recorded {
  readonly name: string;
  readonly record: BatchRecord;
  readonly batch: BatchTensors;
  readonly actor: Model;
  /** The critic of runs that have one. */
  readonly critic: Model | undefined;
  /** Samples of each micro-batch of the last optimiser step. */
  readonly micros: readonly Int32Array[];
  /** The policy as a Hugging Face folder, batch.safetensors, and critic.safetensors where there is a critic. */
  readonly folder: string;
}

/** `folder`: does not exist yet. */
export async function record(home: string, { name, overrides }: RecordedBatch, folder: string): Promise<Recorded> {
  const { run, log } = await completedRun(home, join(example, 'recipe.yaml'), [...common, ...overrides]);
  await run.export({ folder, dtype: 'fp32' });
  const config: unknown = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8'));
  const { batch: stored } = await log.iteration(2);
  const bytes = await getBlob(log.store, log.runId, stored.record.tensors);
  writeFileSync(join(folder, 'batch.safetensors'), bytes);
  const batch = decodeBatch(bytes, stored.key);
  const actor = await modelOf(log, 'actor', config, actorOf(stored.record.components).loss);
  const ofCritic = stored.record.components['critic'];
  const critic = ofCritic && (await modelOf(log, 'critic', config, ofCritic.loss));
  if (critic !== undefined) writeFileSync(join(folder, 'critic.safetensors'), weightsOf(critic.policy));
  return { name, record: stored.record, batch, actor, critic, micros: lastStep(batch), folder };
}

/** The model from the newest checkpoint, which is that of the last iteration. */
async function modelOf(log: RunLog, name: string, config: unknown, loss: LossSettings): Promise<Model> {
  const spec = name === 'critic' ? readValueSpec(config) : readDecoderSpec(config);
  const options = { compute: 'fp32', deterministic: false, threads: 2, trainable: true } as const;
  const policy = new NativePolicy(createTrainer(spec, options));
  const manifest = await log.checkpoints.newest();
  if (manifest === undefined) throw new Error('the run has no checkpoint');
  await policy.load(checkpointSource(log.store, log.runId, manifest.record, policy, () => {}, name));
  return { policy, loss };
}

function weightsOf({ trainer }: NativePolicy): Uint8Array {
  const flat = trainer.read('weights');
  const tensors = trainer.parameters.map(({ name, shape, offset, size }) => {
    const data = flat.subarray(offset, offset + size);
    return [name, { dtype: 'F32', shape: [...shape], data }] as const;
  });
  return encodeSafetensors(Object.fromEntries(tensors), {});
}

function lastStep({ stepOffsets_U1, microOffsets_M1, microSamples }: BatchTensors): Int32Array[] {
  const micros: Int32Array[] = [];
  for (let m = at(stepOffsets_U1, -2); m < at(stepOffsets_U1, -1); m++)
    micros.push(microSamples.slice(at(microOffsets_M1, m), at(microOffsets_M1, m + 1)));
  return micros;
}
