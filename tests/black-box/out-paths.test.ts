/** Existing files at the path of --out are never replaced. */
import { execFileSync } from 'node:child_process';
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PetrelUser } from './petrel.ts';

const user = PetrelUser.onLentStack();
const at = (path: string) => join(user.folder, path);

beforeAll(async () => {
  user.recipe();
  user.write('overrides.txt', 'algorithm.adv_estimator=grpo\n');
  const run = await user.petrel('run', 'recipe.yaml', '--name', 'out', '--wait', '--json');
  expect(run.code, run.err).toBe(0);
});
afterAll(() => user.remove());

const commands: readonly (readonly [string, readonly string[]])[] = [
  ['ckpt export', ['ckpt', 'export', 'out']],
  ['model init', ['model', 'init', 'base']],
  ['data arithmetic', ['data', 'arithmetic', '--rows', '4']],
  ['recipe import', ['recipe', 'import', 'overrides.txt']],
];

describe.each(commands)('%s --out', (name, words) => {
  const thesis = `${name.replace(' ', '-')}-thesis.txt`;

  it('does not replace a file', async () => {
    user.write(thesis, 'three years of work');
    const { code, err } = await user.petrel(...words, '--out', thesis);
    expect(lstatSync(at(thesis)).isFile(), `${thesis} is no file any more`).toBe(true);
    expect(user.read(thesis)).toBe('three years of work');
    expect(code).not.toBe(0);
    expect(err).toContain('Choose another');
  });

  it('does not replace a symbolic link', async () => {
    const link = `${thesis}.link`;
    user.write(`linked-${thesis}`, 'three years of work');
    symlinkSync(`linked-${thesis}`, at(link));
    const { code } = await user.petrel(...words, '--out', link);
    expect(lstatSync(at(link)).isSymbolicLink(), `${link} is no link any more`).toBe(true);
    expect(user.read(`linked-${thesis}`)).toBe('three years of work');
    expect(code).not.toBe(0);
  });
});

it('a folder that is filled while a model is written keeps those files', async () => {
  mkdirSync(at('filled'));
  // The command copies these two files from pipes, one after the other, and waits at each until a process opens it.
  mkdirSync(at('piped'));
  for (const name of readdirSync(at('base')).filter((file) => file.endsWith('.json')))
    writeFileSync(at(`piped/${name}`), readFileSync(at(`base/${name}`)));
  execFileSync('mkfifo', [at('piped/merges.txt'), at('piped/vocab.txt')]);
  const init = user.petrel('model', 'init', 'piped', '--out', 'filled');
  await passPipe('piped/merges.txt');
  writeFileSync(at('filled/thesis.txt'), 'three years of work');
  await passPipe('piped/vocab.txt');
  const { code } = await init;
  expect(existsSync(at('filled/thesis.txt')), 'filled/thesis.txt was removed').toBe(true);
  expect(user.read('filled/thesis.txt')).toBe('three years of work');
  expect(code).not.toBe(0);
  expect(readdirSync(user.folder).filter((name) => name.includes('.partial-'))).toEqual([]);
});

async function passPipe(path: string): Promise<void> {
  await (await open(at(path), 'w')).close();
}
