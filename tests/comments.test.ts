/** Checks comments and the length of lines, which the formatter leaves as they are. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packageRoot } from '../infra/home.ts';
import { brokenSentences, longLines } from './architecture/comments.ts';

const ROOT = packageRoot();
const listed = execFileSync('git', ['ls-files', '-z', '*.ts', '*.mjs', '*.js', '*.cpp', '*.h'], { cwd: ROOT });
const sources = listed
  .toString()
  .split('\0')
  .filter((path) => path !== '' && !path.startsWith('tests/golden/') && !path.startsWith('tests/histories/'))
  .map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }));

describe('every source file', () => {
  it('has doc comments whose first sentence has a subject', () => {
    expect(sources.flatMap(brokenSentences)).toEqual([]);
  });

  it('has no line of more than 120 columns, except for what is in quotes', () => {
    expect(sources.flatMap(longLines)).toEqual([]);
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
  });
});
