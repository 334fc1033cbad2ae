/** Writes an adapter as a folder that peft loads. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { copyCompanions } from '../folder.ts';
import { writeNewFolder } from '../new-folder.ts';
import { writeSafetensors } from '../safetensors.ts';
import type { Tensors } from '../safetensors.ts';
import { adapterConfigName, adapterWeightsName } from './config.ts';
import { withBase } from './given.ts';

export interface SavedAdapter {
  /** Folder with the adapter's config, and the tokenizer's files. */
  readonly from: string;
  /** What the config is to name as the base: a folder, or a name on the hub. */
  readonly base: string;
  /** The base is of this revision on the hub; null for a folder. */
  readonly revision: string | null;
  readonly task: 'CAUSAL_LM' | 'SEQ_CLS';
  readonly tensors: Tensors;
  readonly dtype: 'float32' | 'bfloat16';
}

/** The folder appears when it is complete. Throws InvalidInputError when anything but an empty folder is there. */
export async function saveAdapter(folder: string, { from, tensors, dtype, ...about }: SavedAdapter): Promise<void> {
  await writeNewFolder(folder, async (partial) => {
    await writeSafetensors(join(partial, adapterWeightsName), tensors, dtype === 'bfloat16' ? 'BF16' : 'F32');
    await writeFile(
      join(partial, adapterConfigName),
      await withBase(from, about.base, { revision: about.revision, task_type: about.task }),
    );
    await copyCompanions(from, partial);
  });
}
