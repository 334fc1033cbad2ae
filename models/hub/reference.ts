/** What `model.path` may be: a folder, or a model on the hub. */
import { stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { InvalidInputError } from '../../core/errors.ts';

export type ModelReference =
  | { readonly type: 'folder'; readonly folder: string }
  | { readonly type: 'hub'; readonly name: string; readonly revision: string };

const hubName = /^([\w][\w.-]*\/[\w][\w.-]*)(?:@([\w][\w./-]*))?$/;

/**
 * A folder starts with ".", "/" or "~", or exists; any other text must have the form `org/name` or `org/name@revision`.
 */
export async function readReference(text: string, revision = 'main'): Promise<ModelReference> {
  if (/^[./]/.test(text)) return { type: 'folder', folder: resolve(text) };
  if (/^~(?:\/|$)/.test(text)) return { type: 'folder', folder: join(homedir(), text.slice(1)) };
  const match = hubName.exec(text);
  if (match?.[1] !== undefined && !text.includes('..')) {
    const isFolder = await stat(text).then(
      (entry) => entry.isDirectory(),
      () => false,
    );
    if (!isFolder) return { type: 'hub', name: match[1], revision: match[2] ?? revision };
  }
  const isFolder = await stat(text).then(
    (entry) => entry.isDirectory(),
    () => false,
  );
  if (isFolder) return { type: 'folder', folder: resolve(text) };
  throw new InvalidInputError(
    `model ${JSON.stringify(text)}: expected a folder, or a name on the hub (org/name or org/name@revision)`,
    {
      hint: 'a folder starts with "./", "/" or "~/".',
    },
  );
}
