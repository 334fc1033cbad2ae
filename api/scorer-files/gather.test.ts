import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { InvalidInputError } from '../../core/errors.ts';
import { decodeScorerFiles, encodeScorerFiles } from '../../rewards/scorer-files.ts';
import { gatherScorer } from './gather.ts';

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'petrel-gather-'))));
afterEach(() => rmSync(folder, { recursive: true }));

function write(files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
}

/** The files that travel with a scorer, in order. */
async function gathered(entry: string, requirements: string | null = null): Promise<string[]> {
  const whole = await gatherScorer(join(folder, entry), requirements);
  return [...whole.files.keys()].toSorted();
}

async function refusal(entry: string, requirements: string | null = null): Promise<InvalidInputError> {
  const error = await gathered(entry, requirements).catch((thrown: unknown) => thrown);
  if (error instanceof InvalidInputError) return error;
  throw new Error(`expected a refusal, got ${String(error)}`);
}

const install = (name: string, more: object = {}) => ({
  [`node_modules/${name}/package.json`]: JSON.stringify({ name, main: 'index.js', ...more }),
  [`node_modules/${name}/index.js`]: 'module.exports = 1;',
});

describe('a scorer in TypeScript', () => {
  it('brings what it imports, and what that imports, each once', async () => {
    write({
      'score.ts': `import { a } from './a.ts';\nexport { b } from './lib/b.js';\nimport 'node:fs';\nimport 'path';\nimport table from './table.json' with { type: 'json' };\nexport const computeScore = () => a + table.x;\nawait import('./late.ts');`,
      'a.ts': `import { b } from './lib/b.js';\nexport const a: number = b;`,
      'lib/b.js': `import '../a.ts';\nexport const b = 1;`,
      'late.ts': 'export {};',
      'table.json': '{"x": 1}',
      'unused.ts': 'export {};',
    });
    expect(await gathered('score.ts')).toEqual(['a.ts', 'late.ts', 'lib/b.js', 'table.json']);
  });

  it('does not bring what it imports only for its types, and needs none of it', async () => {
    write({
      'score.ts': `import type { A } from './nowhere.ts';\nimport { B } from 'petrel';\nexport const computeScore = (a: A, b: B) => 1;`,
    });
    expect(await gathered('score.ts')).toEqual([]);
  });

  it('is refused with name and line for an import that is not there', async () => {
    write({ 'score.ts': `import './a.ts';`, 'a.ts': `\n// two\nimport { x } from './lost.ts';\nexport const a = x;` });
    const { message, where } = await refusal('score.ts');
    expect([message, where]).toEqual(['the scorer imports ./lost.ts, and there is no such file', './a.ts:3']);
  });

  it('may try to import what is not there', async () => {
    const lost = "'lost-package'";
    write({ 'score.ts': `await import('./lost.ts').catch(() => 0); await import(${lost}).catch(() => 0);` });
    expect(await gathered('score.ts')).toEqual([]);
  });

  it('keeps whole paths and URLs as they are', async () => {
    write({ 'lib.mjs': '' });
    write({
      'in/score.ts': `await import(${JSON.stringify(join(folder, 'lib.mjs'))});\nimport 'data:text/javascript,1';`,
    });
    expect(await gathered('in/score.ts')).toEqual([]);
  });

  it('is refused for a file outside its folder', async () => {
    write({ 'in/score.ts': `\nimport '../a.ts';`, 'a.ts': '' });
    const { message, where } = await refusal('in/score.ts');
    expect([message, where]).toEqual(['the scorer imports ../a.ts, which is not in its folder', './score.ts:2']);
  });

  it('leaves an error of syntax to its loading', async () => {
    write({ 'score.ts': 'export const = ;' });
    expect(await gathered('score.ts')).toEqual([]);
  });
});

describe('packages of JavaScript', () => {
  it('travel whole, with those that they need', async () => {
    write({
      'score.cjs': `const a = require('one');\nconst b = require('./own');\nexports.computeScore = () => a;`,
      'own.js': `import two from '@scope/two/deep.js';`,
      ...install('one', { dependencies: { three: '1' }, optionalDependencies: { lost: '1' } }),
      ...install('@scope/two'),
      'node_modules/@scope/two/deep.js': 'export default 2;',
      'node_modules/@scope/two/deep.d.ts': '',
      ...install('three'),
      ...install('unused'),
      'node_modules/one/node_modules/inner/package.json': '{}',
    });
    expect(await gathered('score.cjs')).toEqual([
      'node_modules/@scope/two/deep.js',
      'node_modules/@scope/two/index.js',
      'node_modules/@scope/two/package.json',
      'node_modules/one/index.js',
      'node_modules/one/node_modules/inner/package.json',
      'node_modules/one/package.json',
      'node_modules/three/index.js',
      'node_modules/three/package.json',
      'own.js',
    ]);
  });

  it('are found through links, as some package managers lay them out', async () => {
    write({ 'score.ts': `import 'one';`, ...install('.store/one', { dependencies: { two: '1' } }) });
    write({
      'node_modules/.store/node_modules/two/package.json': '{}',
      'node_modules/.store/node_modules/two/index.js': '',
    });
    symlinkSync(join(folder, 'node_modules/.store/one'), join(folder, 'node_modules/one'));
    expect(await gathered('score.ts')).toEqual([
      'node_modules/one/index.js',
      'node_modules/one/package.json',
      'node_modules/two/index.js',
      'node_modules/two/package.json',
    ]);
  });

  it.each([
    ['is not installed', `\nimport 'lost/deep.js';`, {}, 'no package lost is installed beside it'],
    ['needs one that is not', `\nimport 'one';`, install('one', { dependencies: { lost: '1' } }), 'needs lost'],
    [
      'is built for this machine',
      `\nimport 'one';`,
      { ...install('one'), 'node_modules/one/x.node': '' },
      'is built for',
    ],
  ])('refuse the scorer when one %s', async (_, source, files, expected) => {
    write({ 'score.mjs': source, ...files });
    const { message, where } = await refusal('score.mjs');
    expect(message).toContain(expected);
    expect(where).toBe('./score.mjs:2');
  });
});

describe('a scorer in Python', () => {
  it('brings modules and packages of its folder', async () => {
    write({
      'score.py':
        'import helper\nimport json, os.path\nfrom rules import words, numbers as n\nimport plain.deep\ntry:\n    import lost\nexcept ImportError:\n    lost = None\n',
      'helper.py': 'import rules.words\n',
      'rules/__init__.py': 'from . import inner\nfrom .inner import thing\n',
      'rules/inner.py': 'thing = 1\n',
      'rules/words.py': 'from .deep.more import x\n',
      'rules/numbers.py': '',
      'rules/deep/__init__.py': '',
      'rules/deep/more.py': 'from .. import numbers\nx = 1\n',
      'rules/unused.py': '',
      'plain/deep.py': '',
      'unused.py': '',
    });
    expect(await gathered('score.py')).toEqual([
      'helper.py',
      'plain/deep.py',
      'rules/__init__.py',
      'rules/deep/__init__.py',
      'rules/deep/more.py',
      'rules/inner.py',
      'rules/numbers.py',
      'rules/words.py',
    ]);
  });

  it('is refused with name and line for a module that is nowhere', async () => {
    write({ 'score.py': 'import helper\n', 'helper.py': '# one\n\nimport petrel_lost_module\n' });
    const { message, where } = await refusal('score.py');
    expect(message).toContain('the scorer imports petrel_lost_module, which is neither in its folder nor installed');
    expect(where).toBe('./helper.py:3');
  });

  it('may import what is nowhere later, or in a branch', async () => {
    write({ 'score.py': 'def compute_score(*a, **k):\n    import petrel_lost_module\n' });
    expect(await gathered('score.py')).toEqual([]);
  });

  const hash = `--hash=sha256:${'a'.repeat(64)}`;

  it('names packages in a list with versions and hashes', async () => {
    const list = `# some\nsympy==1.14.0 ${hash}\n\nmpmath==1.3.0 ; python_version > "3" \\\n    ${hash} \\\n    ${hash}\n`;
    write({ 'score.py': 'import petrel_lost_module\n', 'list.txt': list });
    const whole = await gatherScorer(join(folder, 'score.py'), join(folder, 'list.txt'));
    expect(whole.requirements).toBe(list);
  });

  it.each(['sympy', `sympy>=1.14 ${hash}`, 'sympy==1.14.0', '-e .', `https://x/y.whl ${hash}`])(
    'is refused for a line without a version or a hash: %s',
    async (line) => {
      write({ 'score.py': '', 'list.txt': `sympy==1.14.0 ${hash}\n${line}\n` });
      const { message, where } = await refusal('score.py', join(folder, 'list.txt'));
      expect(message).toContain(`expected name==version --hash=sha256:…, got ${line}`);
      expect(where).toBe(`${join(folder, 'list.txt')}:2`);
    },
  );

  it('is the only one that names packages', async () => {
    write({ 'score.mjs': '', 'list.txt': '' });
    expect((await refusal('score.mjs', join(folder, 'list.txt'))).message).toContain('is for scorers in Python');
  });
});

describe('the files of a scorer', () => {
  it('are the same bytes in any order, and come back', () => {
    const [a, b] = [Uint8Array.of(1, 2), Uint8Array.of(255)];
    const one = encodeScorerFiles({
      files: new Map([
        ['x/a.py', a],
        ['b.py', b],
      ]),
      requirements: 'r',
    });
    const other = encodeScorerFiles({
      files: new Map([
        ['b.py', b],
        ['x/a.py', a],
      ]),
      requirements: 'r',
    });
    expect(one).toEqual(other);
    const { files, requirements } = decodeScorerFiles(one);
    expect([files.get('x/a.py'), files.get('b.py'), requirements]).toEqual([a, b, 'r']);
  });

  it.each(['../x', '/x', 'a//b', 'a/../../b', './a', 'a\\b'])('do not leave their folder: %s', (path) => {
    const bytes = new TextEncoder().encode(JSON.stringify({ format: 1, files: { [path]: '' } }));
    expect(() => decodeScorerFiles(bytes)).toThrow(InvalidInputError);
  });
});
