/** A model of a size with random weights, as a folder in Hugging Face's form, for engines that read one. */
import { join } from 'node:path';
import { packageRoot } from '../infra/home.ts';
import { readDecoderSpec } from '../native/model/config.ts';
import { initialTensors } from '../native/model/init.ts';
import { saveHuggingFace } from '../models/folder.ts';
import { deviation } from './model.ts';
import { configJson } from './sizes.ts';
import type { Size } from './sizes.ts';

export async function saveSize(folder: string, size: Size): Promise<void> {
  const config = { ...configJson(size), torch_dtype: 'float32', bos_token_id: 1, eos_token_id: 2, pad_token_id: 0 };
  await saveHuggingFace(folder, {
    config,
    tensors: initialTensors(readDecoderSpec(config), 1, deviation),
    dtype: 'float32',
    companions: join(packageRoot(), 'examples/00-arithmetic-sft/base'),
  });
}
