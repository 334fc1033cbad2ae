/**
 * A build of petrel in a store, for machines that join: every file by its digest, and a list of them whose digest names
 * the build. Two builds share the files that are equal.
 */
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { TerminalError } from '../../core/errors.ts';
import type { Store } from '../../core/ports/store.ts';
import { keys } from '../../core/records/keys.ts';
import { sha256 } from '../../log/objects/digest.ts';

const pathInside = z.string().refine((path) => !path.startsWith('/') && !path.split('/').includes('..'));
const fileList = z.object({
  files: z.array(z.object({ path: pathInside, digest: z.string().regex(/^[0-9a-f]{64}$/), mode: z.int() })),
});
type FileList = Readonly<z.infer<typeof fileList>>;
type ListedFile = FileList['files'][number];

/** What a worker needs, on Linux with x64. The packages are those that find files of their own. */
const parts: readonly (readonly [folder: string, files: RegExp])[] = [
  ['.', /^package\.json$/],
  ['dist', /^build-id$/],
  ['dist/programs', /\.js$/],
  ['build/native', /^petrel(\.node|-)/],
  ['engines/torch', /\.(py|txt)$/],
  ['engines/torch/petrel_torch', /\.py$/],
  ['engines/vllm', /\.(py|txt)$/],
  ['engines/vllm/petrel_vllm', /\.py$/],
  ['rewards/host', /\.(py|mjs)$/],
  ['rewards/python', /\.(py|txt)$/],
  ['rewards/code', /\.py$/],
  ['node_modules/tokenizers', /^package\.json$|\.js$|linux-x64.*\.node$/],
  ['node_modules/@swc/core', /\.(json|js)$/],
  ['node_modules/@swc/core-linux-x64-gnu', /./],
  ['node_modules/@swc/counter', /\.(json|js)$/],
];

/** Files that are read and written at a time. */
const atOnce = 16;

/** A build, by the digest of its list. */
export interface Build {
  readonly digest: string;
  readonly list: Uint8Array;
  readonly files: readonly ListedFile[];
  /** Folder of the package with its files. */
  readonly root: string;
}

/** The build that this package is. */
export async function readBuild(root: string): Promise<Build> {
  const paths = (await Promise.all(parts.map(([folder, names]) => namesIn(root, folder, names)))).flat().sort();
  const files = await inTurns(paths, async (path) => {
    const [bytes, { mode }] = await Promise.all([readFile(join(root, path)), stat(join(root, path))]);
    return { path, digest: sha256(bytes), mode: mode & 0o777 };
  });
  const list = new TextEncoder().encode(JSON.stringify({ files } satisfies FileList));
  return { digest: sha256(list), list, files, root };
}

async function namesIn(root: string, folder: string, names: RegExp): Promise<string[]> {
  const found = await readdir(join(root, folder), { withFileTypes: true });
  const files = found.filter((entry) => entry.isFile() && names.test(entry.name));
  return files.map(({ name }) => (folder === '.' ? name : `${folder}/${name}`));
}

/** Idempotent. The list is written last, so a build that has one is complete. */
export async function publishBuild(store: Store, { digest, list, files, root }: Build): Promise<void> {
  const key = keys.build(digest);
  if ((await store.head(key)) !== undefined) return;
  await inTurns(files, async (file) => {
    const ofFile = keys.buildFile(file.digest);
    if ((await store.head(ofFile)) === undefined) await store.put(ofFile, await readFile(join(root, file.path)));
  });
  await store.put(key, list);
}

/**
 * Puts the build into `<folder>/<digest>` and returns that path; one that is there is complete. Throws TerminalError
 * `NoBuild` and `WrongBuild` when the store has something else under a digest.
 */
export async function fetchBuild(store: Store, digest: string, folder: string): Promise<string> {
  const place = join(folder, digest);
  if (await exists(join(place, 'package.json'))) return place;
  await removeUnfinished(folder);
  const unfinished = unfinishedPath(place, process.pid);
  const text = new TextDecoder().decode(await verified(store, keys.build(digest), digest));
  const { files } = fileList.parse(JSON.parse(text));
  await inTurns(files, async ({ path, digest: ofFile, mode }) => {
    const bytes = await verified(store, keys.buildFile(ofFile), ofFile);
    await mkdir(dirname(join(unfinished, path)), { recursive: true });
    await writeFile(join(unfinished, path), bytes, { mode });
  });
  await rename(unfinished, place);
  return place;
}

const unfinishedPath = (place: string, pid: number): string => `${place}.${pid}.tmp`;

/** What earlier processes have left, which were ended while they fetched a build. */
async function removeUnfinished(folder: string): Promise<void> {
  const names = await readdir(folder).catch(ifMissing<string[]>([]));
  for (const name of names) {
    const [, pid] = /^[0-9a-f]{64}\.(\d+)\.tmp$/.exec(name) ?? [];
    if (pid !== undefined && (Number(pid) === process.pid || !isAlive(Number(pid))))
      await rm(join(folder, name), { recursive: true, force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

const hint = 'petrel fleet token --pool <name> on the control machine stores the build of the stack again';

async function verified(store: Store, key: string, digest: string): Promise<Uint8Array> {
  const bytes = await store.get(key);
  if (bytes === undefined)
    throw new TerminalError('NoBuild', `expected the stack's build in ${store.url}, and ${key} is missing`, { hint });
  const found = sha256(bytes);
  if (found === digest) return bytes;
  throw new TerminalError('WrongBuild', `${key}: expected bytes with the digest ${digest}, got ${found}`, {
    where: store.url,
    hint: `remove ${key} from the store; ${hint}`,
  });
}

const exists = (path: string): Promise<boolean> => stat(path).then(() => true, ifMissing(false));

const ifMissing =
  <T>(value: T) =>
  (error: NodeJS.ErrnoException): T => {
    if (error.code === 'ENOENT') return value;
    throw error;
  };

/** Results in the order of the items. */
async function inTurns<T, R>(items: readonly T[], act: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const turn = async () => {
    for (let i = next++; i < items.length; i = next++) results[i] = await act(items[i] as T);
  };
  await Promise.all(Array.from({ length: atOnce }, turn));
  return results;
}
