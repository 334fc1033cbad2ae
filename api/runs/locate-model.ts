/** Where a recipe's model and tokenizer are on this machine: a folder, or a copy from the hub. */
import { join } from 'node:path';
import type { Recipe } from '../../core/recipe/index.ts';
import { checkRoom } from '../../infra/store/free-space.ts';
import type { PreparePorts } from './prepare-ports.ts';

export interface LocatedModel {
  readonly folder: string;
  readonly tokenizerFolder: string;
}

export async function locateModel({ model }: Recipe, ports: PreparePorts): Promise<LocatedModel> {
  const folder = await locate(model.path, model.revision, ports);
  return {
    folder,
    tokenizerFolder: model.tokenizer_path === null ? folder : await locate(model.tokenizer_path, 'main', ports),
  };
}

async function locate(reference: string, revision: string, ports: PreparePorts): Promise<string> {
  // The hub client is loaded only here, so that other commands start quickly.
  const { hubSettings, localModel } = await import('../../models/hub.ts');
  const found = await localModel(reference, {
    ...hubSettings(ports.env),
    cache: join(ports.home, 'hub'),
    revision,
    checkRoom: (bytes) => checkRoom("petrel's home", ports.home, bytes),
    onProgress: ({ file, bytes, totalBytes }) =>
      ports.say(`fetching ${file}: ${Math.round((100 * bytes) / Math.max(1, totalBytes))} %`),
  });
  return found.folder;
}
