/** A user's scorer with all files and packages that it needs. */
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { InvalidInputError } from '../../core/errors.ts';
import type { WholeScorer } from '../../rewards/scorer-files.ts';
import { filesOfJavaScript } from './javascript.ts';
import { checkRequirements, filesOfPython } from './python.ts';

/** Limits of one scorer, because all of its files are in one blob of the run. */
const most = { files: 4_000, bytes: 16 * 2 ** 20 };

/**
 * `path`: absolute, of the module. `requirements`: absolute path of the list of its Python packages.
 * @throws InvalidInputError when a file cannot be read, an import is nowhere, or there is too much of it.
 */
export async function gatherScorer(path: string, requirements: string | null): Promise<WholeScorer> {
  const module = await contentOf(path, 'path');
  const list = requirements === null ? undefined : await listOf(path, requirements);
  const files = path.endsWith('.py') ? await filesOfPython(path, list !== undefined) : await javaScript(path);
  const bytes = [...files.values()].reduce((sum, one) => sum + one.length, 0);
  if (files.size > most.files || bytes > most.bytes)
    throw new InvalidInputError(
      `the scorer needs ${files.size} files of ${Math.ceil(bytes / 2 ** 20)} MiB, the most are ${most.files} of ${most.bytes / 2 ** 20} MiB`,
      { where: path, hint: 'use smaller packages, or fewer' },
    );
  return { fileName: basename(path), module, files, ...(list !== undefined && { requirements: list }) };
}

const javaScript = async (path: string) =>
  /\.([cm]?js|m?ts)$/.test(path) ? filesOfJavaScript(path) : new Map<string, Uint8Array>();

async function listOf(path: string, requirements: string): Promise<string> {
  if (!path.endsWith('.py'))
    throw new InvalidInputError('reward.custom_reward_function.requirements is for scorers in Python', {
      where: path,
      hint: 'packages of JavaScript come from the node_modules beside the scorer; nothing needs to name them',
    });
  const text = new TextDecoder().decode(await contentOf(requirements, 'requirements'));
  checkRequirements(text, requirements);
  return text;
}

function contentOf(path: string, key: 'path' | 'requirements'): Promise<Uint8Array> {
  return readFile(path).catch((cause: unknown) => {
    throw new InvalidInputError(`reward.custom_reward_function.${key}: cannot read ${path}`, {
      hint: "a path in a recipe is relative to the recipe's folder, one on the command line to the folder that you are in",
      cause,
    });
  });
}
