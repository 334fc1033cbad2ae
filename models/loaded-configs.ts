/** config.json of models by folder, read once per thread: each job of a run asks for it. */
import type { JsonObject } from './fields.ts';
import { readConfigJson } from './folder.ts';

const loaded = new Map<string, Promise<JsonObject>>();

/** `folder`: one whose files never change. Throws InvalidInputError as `readConfigJson`. */
export function configOf(folder: string): Promise<JsonObject> {
  let config = loaded.get(folder);
  if (config === undefined) {
    config = readConfigJson(folder);
    loaded.set(folder, config);
    config.catch(() => loaded.delete(folder));
  }
  return config;
}
