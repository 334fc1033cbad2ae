/** Low-rank adapters against peft's float64 results, through the port of engines. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TrainingEngine } from '../../../core/ports/engines.ts';
import type { EngineOptions, PolicyEngine } from '../../../core/ports/policy.ts';
import { readConfigJson, saveHuggingFace } from '../../../models/folder.ts';
import { adapterWeightsName, mergedTensors, readLoraConfig } from '../../../models/lora.ts';
import { decodeSafetensors, gathered, openSafetensors } from '../../../models/safetensors.ts';
import type { FloatTensor } from '../../../models/safetensors.ts';
import type { Evaluator, GoldenCase, Outcome } from '../types.ts';
import { KeptModel } from './models-kept.ts';
import { gradient, logprobs, summary, trainStep } from './models.ts';

export function loraEvaluator(engines: TrainingEngine, options: EngineOptions): Evaluator & { close(): Promise<void> } {
  const kept = new KeptModel(engines, options);
  return {
    family: 'lora',
    handles: () => true,
    async evaluate(testCase, { base }, folder) {
      if (testCase.kind === 'merged') return merged(engines, options, testCase, folder, join(folder, String(base)));
      return evaluated(await kept.of({ folder, head: 'tokens' }), testCase, folder);
    },
    close: () => kept.close(),
  };
}

function evaluated(model: PolicyEngine, testCase: GoldenCase, folder: string) {
  switch (testCase.kind) {
    case 'logprobs':
      if (testCase.inputs['adapter'] !== 'off') return logprobs({ model }, testCase);
      if (model.base === undefined) throw new Error('the engine gives no base of a model with an adapter');
      return logprobs({ model: model.base }, testCase);
    case 'gradient':
      return gradient({ model, folder }, testCase);
    case 'train_step':
      return trainStep({ model }, testCase);
    default:
      throw new Error(`no evaluator for adapter cases of kind ${testCase.kind}`);
  }
}

/** The log-probs of a folder whose weights have the adapter in them, and these weights. */
async function merged(
  engines: TrainingEngine,
  options: EngineOptions,
  testCase: GoldenCase,
  folder: string,
  base: string,
): Promise<{ got: Outcome }> {
  const scratch = await mkdtemp(join(tmpdir(), 'petrel-merged-'));
  try {
    const out = join(scratch, 'merged');
    const tensors = await mergedOf(folder, base);
    await saveHuggingFace(out, { config: await readConfigJson(base), tensors, dtype: 'float32' });
    const model = await engines.open({ folder: out, head: 'tokens' }, { ...options, trainable: false });
    try {
      await model.load({ type: 'folder', folder: out });
      const { got } = await logprobs({ model }, testCase);
      const wanted = Object.keys((testCase.expected?.['weights'] ?? {}) as object);
      const weights = tensors
        .filter(({ name }) => wanted.includes(name))
        .map(({ name, data }) => [name, summary(data)]);
      return { got: { ...got, weights: Object.fromEntries(weights) } };
    } finally {
      await model.close();
    }
  } finally {
    await rm(scratch, { recursive: true });
  }
}

async function mergedOf(folder: string, base: string): Promise<FloatTensor[]> {
  const path = join(folder, adapterWeightsName);
  const adapter = Array.from(decodeSafetensors(await readFile(path), path).tensors, ([name, { shape, data }]) => ({
    name,
    shape,
    data: data as Float32Array,
  }));
  const files = await openSafetensors(base);
  try {
    return await gathered(mergedTensors(files, await readLoraConfig(folder), adapter));
  } finally {
    await files.close();
  }
}
