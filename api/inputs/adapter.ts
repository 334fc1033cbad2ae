/** The low-rank adapter that a run begins with: a new one that follows from its seed, or one that a folder has. */
import { copyFile, mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Digest } from '../../core/ids.ts';
import { trainsAdapter } from '../../core/recipe/index.ts';
import type { Recipe } from '../../core/recipe/index.ts';
import { storeModelFolder } from '../../log/inputs/model-facts.ts';
import { adapterConfigName, adapterWeightsName, createAdapter, withBase } from '../../models/lora.ts';
import type { AdapterSettings } from '../../models/lora.ts';
import type { LocatedModel } from './locate-model.ts';
import type { PreparePorts } from './prepare-ports.ts';

export const adapterSettings = ({ model, seed, kind }: Recipe): AdapterSettings => ({
  rank: model.lora_rank,
  alpha: model.lora_alpha,
  targets: model.target_modules,
  seed,
  task: kind === 'rm' ? 'SEQ_CLS' : 'CAUSAL_LM',
});

/** Stores the model, and with it the adapter that the recipe asks for. */
export async function storeTrainedModel(
  recipe: Recipe,
  ports: PreparePorts,
  { folder, tokenizerFolder }: LocatedModel,
): Promise<{ readonly model: Digest; readonly reference?: Digest }> {
  const base = await storeModelFolder(ports.store, folder, tokenizerFolder);
  if (!trainsAdapter(recipe)) return { model: base };
  const cache = join(ports.home, 'cache');
  await mkdir(cache, { recursive: true });
  const scratch = await mkdtemp(join(cache, 'adapter-'));
  try {
    // Folders of models lie side by side, also in a worker's cache.
    for (const [name, bytes] of Object.entries(await filesOf(recipe, folder, `../${base}`)))
      await writeFile(join(scratch, name), bytes);
    for (const name of await readdir(folder))
      if (/^(?:config|generation_config)\.json$/.test(name)) await copyFile(join(folder, name), join(scratch, name));
    return { model: await storeModelFolder(ports.store, scratch, tokenizerFolder, base), reference: base };
  } finally {
    await rm(scratch, { recursive: true });
  }
}

async function filesOf(recipe: Recipe, folder: string, base: string): Promise<Readonly<Record<string, Uint8Array>>> {
  const { lora_adapter_path: given } = recipe.model;
  if (given === null) return createAdapter(folder, base, adapterSettings(recipe));
  return {
    [adapterConfigName]: await withBase(given, base),
    [adapterWeightsName]: await readFile(join(given, adapterWeightsName)),
  };
}
