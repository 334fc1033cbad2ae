/**
 * A user's files in and around a store are never removed or changed. The janitor takes the time from its own records,
 * so the test sets those back by a day.
 */
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PetrelUser } from './petrel.ts';

const user = new PetrelUser();
const dayMs = 24 * 3_600_000;
let runId = '';
/** A store with one ended run, created in a separate folder. The tests put users' files around a copy of it. */
const made = join(user.folder, 'made');

beforeAll(async () => {
  user.recipe('recipe.yaml', { store: made });
  const run = await user.petrel('run', 'recipe.yaml', '--name', 'kept', '--wait', '--json');
  expect(run.code, run.err).toBe(0);
  await user.petrel('down');
  [runId = ''] = readdirSync(join(made, 'runs'));
});
afterAll(() => user.remove());

/**
 * A project folder that is a store without a marker, as `store: .` created it, and the only store that petrel knows.
 */
function project(name: string): string {
  const folder = join(user.folder, name);
  execFileSync('cp', ['-a', made, folder]);
  rmSync(join(folder, '.petrel-store'), { force: true });
  rmSync(join(user.home, 'store'), { recursive: true, force: true });
  writeFileSync(join(user.home, 'stores.json'), JSON.stringify({ format: 1, stores: [`file://${folder}`] }));
  return folder;
}

type Tree = Readonly<Record<string, string>>;

/** Every path below a folder with its kind and content: `file <content>`, `link <target>`, `folder`. */
function treeOf(folder: string): Tree {
  const tree: Record<string, string> = {};
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    tree[relative(folder, path)] = entry.isSymbolicLink()
      ? `link ${readlinkSync(path)}`
      : entry.isDirectory()
        ? 'folder'
        : `file ${readFileSync(path, 'latin1')}`;
  }
  return tree;
}

/** Sets the times in the janitor's records and of all files back by two days. */
function letDaysPass(folder: string): void {
  const before = new Date(Date.now() - 2 * dayMs);
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true }))
    if (entry.isFile()) utimesSync(join(entry.parentPath, entry.name), before, before);
  const janitor = join(folder, 'janitor');
  for (const name of existsSync(janitor) ? readdirSync(janitor) : []) {
    const { check: _check, ...entry } = JSON.parse(readFileSync(join(janitor, name), 'utf8'));
    for (const one of entry.unnamed) one.since = before.toISOString();
    writeFileSync(join(janitor, name), JSON.stringify(entry));
  }
}

/**
 * Two passes of the janitor with days between them, two without a grace period, the removal of the run, and two more.
 */
async function everyRemoval(folder: string): Promise<void> {
  await user.petrel('gc');
  letDaysPass(folder);
  await user.petrel('gc');
  for (let pass = 0; pass < 2; pass++) await user.petrel('gc', '--grace', '0s');
  const removed = await user.petrel('rm', runId, '--yes');
  expect(removed.code, removed.err).toBe(0);
  for (let pass = 0; pass < 2; pass++) await user.petrel('gc', '--grace', '0s');
}

/** Which of the user's files are missing or changed. */
function lost(before: Tree, folder: string): readonly string[] {
  const after = treeOf(folder);
  return Object.keys(before).filter((path) => after[path] !== before[path]);
}

const hex = 'abcdef0123456789'.repeat(4);

describe('a store in a project folder', () => {
  it('keeps the user’s models, datasets and temporary files, a day later too', async () => {
    const folder = project('project');
    const theirs: Tree = {
      'models/llama-3-8b/model.safetensors': 'weights',
      'datasets/gsm8k/train.jsonl': 'rows',
      [`models/${hex}/model.safetensors`]: 'weights',
      [`datasets/${hex}/train.jsonl`]: 'rows',
      'src/.tmp-notes': 'notes',
      '.tmp-0123456789abcdef': 'notes',
      [`runs/${runId}/notes.txt`]: 'what I learned',
    };
    for (const [path, content] of Object.entries(theirs)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), content);
    }
    await everyRemoval(folder);
    const gone = Object.keys(theirs).filter((path) => !existsSync(join(folder, path)));
    expect(gone, 'petrel removed files of the user').toEqual([]);
  });

  it('loses petrel’s own old files', async () => {
    const folder = project('emptied');
    await everyRemoval(folder);
    const left = Object.keys(treeOf(folder)).filter((path) => /^(runs|models|datasets)\//.test(path));
    expect(left.sort()).toEqual(['', '/removed.json', '/run.json'].map((end) => `runs/${runId}${end}`));
  });
});

describe('a new store', () => {
  it('is refused among the user’s files, and in a home folder', async () => {
    user.write('mixed/thesis.txt', 'three years of work');
    user.recipe('mixed.yaml', { store: join(user.folder, 'mixed') });
    const mixed = await user.petrel('run', 'mixed.yaml', '--detach');
    expect(mixed.code, `a store was created beside thesis.txt: ${mixed.out}`).not.toBe(0);
    expect(mixed.err).toContain('it holds other files (thesis.txt)');
    expect(readdirSync(join(user.folder, 'mixed'))).toEqual(['thesis.txt']);
    const empty = join(user.folder, 'my-home');
    mkdirSync(empty);
    user.recipe('home.yaml', { store: empty });
    const home = await user.petrelWith({ env: { HOME: empty } }, 'run', 'home.yaml', '--detach');
    expect(home.code).not.toBe(0);
    expect(home.err).toContain('it is a home folder');
    expect(readdirSync(empty)).toEqual([]);
  });
});

describe('a hostile record', () => {
  const nameStrays = (folder: string, keys: readonly string[]) => {
    const file = join(folder, 'runs', runId, 'retention');
    mkdirSync(file, { recursive: true });
    const n = readdirSync(file).length + 1;
    const entry = {
      ...{ format: 1, runId, n, at: '2026-01-01T00:00:00Z', floor: 0, cleared: 0, pins: [] },
      ...{ condemned: [], condemnedAt: '2026-01-01T00:00:00Z', shared: [], verified: [] },
      strays: { status: 1, keys, since: '2026-01-01T00:00:00Z', removing: true },
    };
    writeFileSync(join(file, `${n}.json`), JSON.stringify(entry));
  };

  it.each([
    ['what a symbolic link leads to', () => ['link/.ssh/']],
    ['a record of its run', () => [`runs/${runId}/terms/1/term.json`]],
    ['the records of another run', () => ['runs/other-20260101-000000-abcd/terms/']],
  ])('does not remove %s', async (what, keysOf) => {
    const folder = project(`hostile-${what.replaceAll(' ', '-')}`);
    const outside = `${folder}-outside`;
    mkdirSync(join(outside, '.ssh'), { recursive: true });
    writeFileSync(join(outside, '.ssh/id_rsa'), 'secret');
    symlinkSync(outside, join(folder, 'link'));
    mkdirSync(join(folder, 'runs/other-20260101-000000-abcd/terms/1'), { recursive: true });
    writeFileSync(join(folder, 'runs/other-20260101-000000-abcd/terms/1/term.json'), '{}');
    const before = { ...treeOf(folder), ...treeOf(outside) };
    nameStrays(folder, keysOf());
    const gc = await user.petrel('gc', '--grace', '0s', '--json');
    expect(
      lost(before, folder).filter((path) => !path.startsWith('.ssh')),
      'gone from the store',
    ).toEqual([]);
    expect(existsSync(join(outside, '.ssh/id_rsa')), 'the file behind the link is gone').toBe(true);
    expect(gc.out).toContain('expected a blob of this run');
  });

  it('does not remove a blob of its own run behind a symbolic link', async () => {
    const folder = project('linked');
    const outside = `${folder}-outside`;
    const blobs = join(folder, 'runs', runId, 'blobs');
    mkdirSync(outside);
    writeFileSync(join(outside, hex), 'secret');
    rmSync(blobs, { recursive: true });
    symlinkSync(outside, blobs);
    nameStrays(folder, [`runs/${runId}/blobs/${hex}`]);
    await user.petrel('gc', '--grace', '0s', '--json');
    expect(existsSync(join(outside, hex)), 'the file behind the link is gone').toBe(true);
  });
});

/** Names that users choose, and names that look like petrel's. */
const names = fc.constantFrom(
  ...['notes.txt', '.tmp-notes', '.tmp-0123', '.tmp-xyzxyzxyzxyzxyz0', '.git', 'llama-3-8b', 'train.jsonl', 'exp1'],
  ...['manifest.json', 'run.json', 'removed.json', 'model.safetensors', 'rows.jsonl', hex, hex.slice(1), `${hex}.json`],
  ...['blobs', 'terms', 'logs', '1', 'events.jsonl', 'old-20260101-000000-abcd'],
);
const tops = fc.constantFrom('models', 'datasets', 'runs', 'schedules', 'src', 'data', '.cache', 'mine');
const content = fc.constantFrom('', 'text', '{}', '{"format":1,"files":[]}', '{"format":1,"runId":"x"}');
const node = fc.record({
  path: fc.tuple(tops, fc.array(names, { minLength: 1, maxLength: 4 })).map(([top, rest]) => [top, ...rest].join('/')),
  what: fc.oneof(
    content.map((text) => ({ type: 'file' as const, text })),
    fc.constant({ type: 'folder' as const }),
    fc.constantFrom('..', '../..', '/tmp', 'notes.txt', 'outside').map((target) => ({ type: 'link' as const, target })),
  ),
});

function plant(folder: string, nodes: readonly (typeof node extends fc.Arbitrary<infer T> ? T : never)[]): Tree {
  const mine: Record<string, true> = {};
  for (const { path, what } of nodes) {
    const at = join(folder, path);
    // Leaves out a name that exists, and a path through a file or a link.
    if (lstatSync(at, { throwIfNoEntry: false }) !== undefined || !isPlain(folder, dirname(path))) continue;
    for (let parent = path; parent !== '.'; parent = dirname(parent)) {
      if (parent !== path && existsSync(join(folder, parent))) break;
      mine[parent] = true;
    }
    mkdirSync(dirname(at), { recursive: true });
    if (what.type === 'file') writeFileSync(at, what.text);
    else if (what.type === 'folder') mkdirSync(at);
    else symlinkSync(what.target === 'outside' ? join(user.folder, 'outside') : what.target, at);
  }
  const tree = treeOf(folder);
  return Object.fromEntries(Object.entries(tree).filter(([path]) => mine[path]));
}

/** Does the path consist of folders, as far as it exists? */
function isPlain(folder: string, path: string): boolean {
  if (path === '.') return true;
  const found = lstatSync(join(folder, path), { throwIfNoEntry: false });
  return (found === undefined || found.isDirectory()) && isPlain(folder, dirname(path));
}

describe('random files among a store', { tags: ['long'] }, () => {
  const seeds = [1, 2, 3, 4];
  it.each(seeds)('stay after every removal, byte for byte: seed %i', async (seed) => {
    const outside = join(user.folder, 'outside');
    mkdirSync(outside, { recursive: true });
    writeFileSync(join(outside, hex), 'secret');
    writeFileSync(join(outside, '.tmp-0123456789abcdef'), 'secret');
    const [nodes = []] = fc.sample(fc.array(node, { minLength: 30, maxLength: 60 }), { seed, numRuns: 1 });
    const folder = project(`random-${seed}`);
    const before = plant(folder, nodes);
    expect(Object.keys(before).length).toBeGreaterThan(20);
    await everyRemoval(folder);
    expect(lost(before, folder), 'petrel removed or changed files of the user').toEqual([]);
    expect(readdirSync(outside).sort()).toEqual(['.tmp-0123456789abcdef', hex]);
  });
});
