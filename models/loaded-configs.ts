/** config.json of models by folder: each job of a run asks for it. */
import { readConfigJson } from './folder.ts';
import { loadedOnce } from './loaded-once.ts';

/** Throws InvalidInputError as `readConfigJson`. */
export const configOf = loadedOnce(readConfigJson);
