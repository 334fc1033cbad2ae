/** Where a recipe's model and tokenizer are on this machine: a folder, or a copy from the hub. */
import { join } from 'node:path';
import { statSync } from 'node:fs';
import { InvalidInputError } from '../../core/errors.ts';
import type { Recipe } from '../../core/recipe/index.ts';
import { fetchModel } from '../../models/hub.ts';
import type { PreparePorts } from './prepare.ts';

export interface LocatedModel {
  readonly folder: string;
  readonly tokenizerFolder: string;
}

export async function locateModel({ model }: Recipe, ports: PreparePorts): Promise<LocatedModel> {
  const folder = await locate(model.path, model.revision, ports);
  return { folder, tokenizerFolder: model.tokenizer_path === null ? folder : await locate(model.tokenizer_path, 'main', ports) };
}

/** A path begins with ".", "/" or "~"; anything else is a name on the hub. */
async function locate(path: string, revision: string, ports: PreparePorts): Promise<string> {
  if (!/^[./~]/.test(path)) return fetchModel(path, { revision, cache: join(ports.home, 'hub'), env: ports.env, onProgress: ports.say });
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) {
    throw new InvalidInputError(`there is no folder ${path}`, { hint: 'model.path: a folder in the Hugging Face layout, or org/name on the hub' });
  }
  return path;
}
