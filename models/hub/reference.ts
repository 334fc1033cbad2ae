/** What `model.path` may be: a folder, or a model on a hub. */
import { stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { InvalidInputError } from '../../core/errors.ts';

export type ModelReference =
  | { readonly type: 'folder'; readonly folder: string }
  | { readonly type: 'hub' | 'modelscope'; readonly name: string; readonly revision: string };

const modelScope = 'modelscope:';
const hubName = /^([\w][\w.-]*\/[\w][\w.-]*)(?:@([\w][\w./-]*))?$/;

/**
 * A folder starts with ".", "/" or "~", or exists; any other text must have the form `org/name` or `org/name@revision`,
 * after `modelscope:` for a model of ModelScope. `revision`, where the text has none: "main" is the hub's default
 * branch, which ModelScope calls master.
 */
export async function readReference(text: string, revision = 'main'): Promise<ModelReference> {
  if (/^[./]/.test(text)) return { type: 'folder', folder: resolve(text) };
  if (/^~(?:\/|$)/.test(text)) return { type: 'folder', folder: join(homedir(), text.slice(1)) };
  if (text.startsWith(modelScope)) return onModelScope(text, revision === 'main' ? 'master' : revision);
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
      hint: 'a folder starts with "./", "/" or "~/", a name on ModelScope with "modelscope:".',
    },
  );
}

function onModelScope(text: string, revision: string): ModelReference {
  const match = text.includes('..') ? null : hubName.exec(text.slice(modelScope.length));
  if (match?.[1] !== undefined) return { type: 'modelscope', name: match[1], revision: match[2] ?? revision };
  throw new InvalidInputError(
    `model ${JSON.stringify(text)}: expected modelscope:org/name or modelscope:org/name@revision`,
    { hint: 'the name is that of the page on ModelScope: https://modelscope.cn/models/org/name.' },
  );
}
