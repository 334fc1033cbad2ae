import { statSync } from 'node:fs';
import { InvalidInputError } from '../../core/errors.ts';
import { expectedTensors, readDecoderConfig } from '../../models/config.ts';
import { openSafetensors } from '../../models/safetensors.ts';
import { checkTensors, readConfigJson } from '../../models/weights.ts';
import { showCount } from '../../core/quantities.ts';
import type { Finding, Probe } from './checks.ts';

/** The model folder: its config is read and every tensor's shape is compared, without loading one. */
export const modelProbe: Probe = {
  name: 'model',
  look: async ({ model }) =>
    isFolderPath(model.path)
      ? await lookAtFolder(model.path)
      : { detail: `${model.path} from the hub, when the run starts`, later: true },
};

function isFolderPath(path: string): boolean {
  return /^[./~]/.test(path);
}

async function lookAtFolder(folder: string): Promise<Finding> {
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) {
    throw new InvalidInputError(`there is no folder ${folder}`, {
      hint: 'model.path: a folder in the Hugging Face layout, or org/name on the hub',
    });
  }
  const config = readDecoderConfig(await readConfigJson(folder), `${folder}/config.json`);
  const source = await openSafetensors(folder);
  try {
    const tensors = expectedTensors(config);
    checkTensors(source, tensors, config.tied);
    const parameters = tensors.reduce((sum, { shape }) => sum + shape.reduce((product, size) => product * size, 1), 0);
    return { detail: `${folder}: ${config.family}, ${config.layers} layers, ${showCount(parameters)} parameters` };
  } finally {
    await source.close();
  }
}
