/** Finds a recipe's model and tokenizer on this machine: a folder, or a copy from a hub. */
import { join } from 'node:path';
import { teacherOf } from '../../core/recipe/index.ts';
import type { Recipe } from '../../core/recipe/index.ts';
import type { LocalModel } from '../../models/hub.ts';
import { checkRoom } from '../../log/objects/free-space.ts';
import type { PreparePorts } from './prepare-ports.ts';

type LocatePorts = Omit<PreparePorts, 'store'>;

export interface LocateOptions {
  /** Do not fetch the weights of a model on the hub; fetch only the files that describe it. */
  readonly withoutWeights?: boolean;
}

export interface LocatedModel {
  readonly folder: string;
  readonly tokenizerFolder: string;
  /** Size of the weights that were not fetched. */
  readonly missingBytes?: number;
}

/** Throws InvalidInputError, or RetryableError `HubUnreachable`. */
export async function locateModel(
  { model }: Recipe,
  ports: LocatePorts,
  options: LocateOptions = {},
): Promise<LocatedModel> {
  const { folder, missingBytes } = await locate(model.path, model.revision, ports, options);
  const tokenizer = model.tokenizer_path === null ? folder : await tokenizerAt(model.tokenizer_path, ports, options);
  return { folder, tokenizerFolder: tokenizer, ...(missingBytes !== undefined && { missingBytes }) };
}

/** The teacher of a distillation; undefined in a run without one. Throws as `locateModel` does. */
export async function locateTeacher(
  recipe: Recipe,
  ports: LocatePorts,
  options: LocateOptions = {},
): Promise<LocalModel | undefined> {
  const path = teacherOf(recipe);
  return path === undefined ? undefined : locate(path, 'main', ports, options);
}

/** The reward model of a recipe that has one. Throws as `locateModel`. */
export async function locateRewardModel(
  { reward }: Recipe,
  ports: LocatePorts,
  options: LocateOptions = {},
): Promise<LocalModel | undefined> {
  const { enable, path } = reward.reward_model;
  return enable && path !== null ? locate(path, 'main', ports, options) : undefined;
}

async function tokenizerAt(path: string, ports: LocatePorts, options: LocateOptions): Promise<string> {
  return (await locate(path, 'main', ports, options)).folder;
}

async function locate(
  reference: string,
  revision: string,
  ports: LocatePorts,
  options: LocateOptions,
): Promise<LocalModel> {
  // The hub client is loaded only here, so that other commands start quickly.
  const [{ hubSettings, localModel, modelScopeSettings }, { outboundFetch }] = await Promise.all([
    import('../../models/hub.ts'),
    import('../../infra/outbound/fetch.ts'),
  ]);
  return localModel(reference, {
    ...hubSettings(ports.env),
    modelScope: modelScopeSettings(ports.env),
    fetch: outboundFetch(),
    ...options,
    cache: join(ports.home, 'hub'),
    revision,
    checkRoom: (bytes) => checkRoom("petrel's home", ports.home, bytes),
    onProgress: ({ file, bytes, totalBytes }) =>
      ports.say(`fetching ${file}: ${Math.round((100 * bytes) / Math.max(1, totalBytes))} %`),
  });
}
