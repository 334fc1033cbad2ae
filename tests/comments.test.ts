/** Checks comments and the length of lines, which the formatter leaves as they are. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packageRoot } from '../infra/home.ts';
import { brokenSentences, longLines, longProse } from './architecture/comments.ts';

const ROOT = packageRoot();
const sources = textsOf('*.ts', '*.mjs', '*.js', '*.cpp', '*.h');

describe('every source file', () => {
  it('has doc comments whose first sentence has a subject', () => {
    expect(sources.flatMap(brokenSentences)).toEqual([]);
  });

  it('has no line of more than 120 columns, except for what is in quotes', () => {
    const others = textsOf('*.py', 'native/CMakeLists.txt', 'examples/**/*.yaml');
    expect([...sources, ...others].flatMap(longLines)).toEqual([]);
    const pages = textsOf('tests/kept-stores/README.md');
    expect(pages.flatMap(({ text }) => longProse(text))).toEqual([]);
  });
});

describe('a doc comment', () => {
  const found = (text: string) => brokenSentences({ path: 'a.ts', text }).length;

  it.each(['Of the tree.', 'For what a job needs.', 'Where a store is.', 'At most 64.', 'In draw order.', 'As `run`.'])(
    'is refused when it says only "%s"',
    (sentence) => {
      expect(found(`/** ${sentence} */`)).toBe(1);
      expect(found(`/**\n * ${sentence}\n * More.\n */`)).toBe(1);
    },
  );

  it.each(['Format of the tree.', 'In a fork, the base is read.', 'Formats of all.', 'What a run needs.'])(
    'may say "%s"',
    (sentence) => expect(found(`/** ${sentence} */`)).toBe(0),
  );
});

describe('a line', () => {
  const long = 'a'.repeat(120);

  it.each([`// ${long}`, `/** ${long} */`, `const ${long} = 1;`])('is too long: %s', (text) => {
    expect(longLines({ path: 'a.ts', text })).toHaveLength(1);
  });

  it('may be longer for its strings', () => {
    expect(longLines({ path: 'a.ts', text: `f('${long}', \`\n${long} \${f("b")}\n\`, /${long}/);` })).toEqual([]);
    expect(longLines({ path: 'a.py', text: `f("${long}", '${long}')  # it's` })).toEqual([]);
  });

  it.each([`# ${long}`, `f('#')  # it's ${long}'s`, `"""${long}"""`, `"""\na ${long}\n"""`, `${long} = 1`])(
    'is too long beside comments with #: %s',
    (text) => {
      expect(longLines({ path: 'a.py', text })).toHaveLength(1);
    },
  );

  it('has as many columns as characters', () => {
    expect(longLines({ path: 'a.yaml', text: `# ${'🙂'.repeat(118)}` })).toEqual([]);
    expect(longLines({ path: 'a.yaml', text: `# ${'🙂'.repeat(119)}` })).toHaveLength(1);
  });

  it('may be one long address', () => {
    expect(longLines({ path: 'a.py', text: `# https://a.test/${long}` })).toEqual([]);
    expect(longLines({ path: 'a.py', text: `# See https://a.test/${long}` })).toHaveLength(1);
  });
});

/** Files of the repository that git lists for the patterns. */
function textsOf(...patterns: string[]) {
  return execFileSync('git', ['ls-files', '-z', ...patterns], { cwd: ROOT })
    .toString()
    .split('\0')
    .filter((path) => path !== '' && !path.startsWith('tests/golden/') && !path.startsWith('tests/histories/'))
    .map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }));
}
