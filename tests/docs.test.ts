/** Checks the docs: links work, commands exist, examples parse, and the commands next to their files generate them. */
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import type { CommandSpec } from '../cli/command.ts';
import { commandReference } from '../cli/command-reference.ts';
import { COMMANDS } from '../cli/commands.ts';
import { loadRecipe } from '../api/recipes/recipe-file.ts';
import { checkFleetSpec } from '../core/fleet/spec.ts';
import { checkRecipe, recipeReference, runIssues } from '../core/recipe/index.ts';
import { packageRoot } from '../infra/home.ts';
import { longProse } from './architecture/comments.ts';
import { cliHome } from './cli.ts';
import { doorsOf, withLinks, withoutLinks } from './docs/doors.ts';
import { buildRun } from './run-builder.ts';

const ROOT = packageRoot();
const SKIPPED = new Set(['node_modules', 'dist', 'build', '.git']);

interface Page {
  /** The path from the root. */
  readonly path: string;
  readonly text: string;
}

const pages: readonly Page[] = markdownUnder(ROOT).map((file) => ({
  path: relative(ROOT, file),
  text: readFileSync(file, 'utf8'),
}));
/** Pages for users. The pages beside reference files describe other programs. */
const guides = pages.filter(({ path }) => !path.startsWith('tests/'));
const page = (path: string): string => pages.find((one) => one.path === path)?.text ?? '';
const foldersIn = (folder: string) =>
  readdirSync(join(ROOT, folder), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);
const examples = [
  ...foldersIn('examples').filter((name) => name !== 'clusters'),
  ...foldersIn('examples/clusters').map((name) => `clusters/${name}`),
];

const cli = cliHome();
afterAll(() => cli.remove());

describe('links', () => {
  it.each(guides.map(({ path }) => path))('of %s lead to existing files and headings', (path) => {
    expect(linksOf(page(path)).filter((link) => !leadsSomewhere(path, link))).toEqual([]);
  });
});

describe('the doors of docs/README.md', () => {
  const doors = doorsOf(page('docs/README.md'));
  const inDoors = doors.flatMap(({ pages: own }) => own.map(({ path }) => path));

  it('are four, and have every page of their folders', () => {
    expect(doors.map(({ name }) => name)).toEqual(['Learn', 'Do', 'Understand', 'Look up']);
    const written = pages.flatMap(({ path }) => /^docs\/((?!README|decisions\/).+\.md)$/.exec(path)?.[1] ?? []);
    expect(inDoors.toSorted()).toEqual(written.toSorted());
  });

  it.each(inDoors)('lead from %s to the pages before and after it', (path) => {
    const text = page(`docs/${path}`);
    expect(text === withLinks(text, path, doors), 'run: npm run docs').toBe(true);
  });

  it('are the four doors of the README, which is short', () => {
    const readme = page('README.md');
    expect(linksOf(readme).filter((link) => link.startsWith('docs/README.md#'))).toEqual(
      doors.map(({ name }) => `docs/README.md#${name.toLowerCase().replace(' ', '-')}`),
    );
    expect(readme.split('\n').length).toBeLessThanOrEqual(91);
  });
});

it('the list of decisions has each of them', () => {
  const listed = linksOf(page('docs/decisions/README.md'));
  expect(readdirSync(join(ROOT, 'docs/decisions')).filter((name) => /^\d/.test(name))).toEqual(listed);
});

describe('the lines of a page', () => {
  it.each(guides.map(({ path }) => path))(
    'of %s have at most 120 columns, except for tables, code and links',
    (path) => {
      expect(longProse(page(path))).toEqual([]);
    },
  );
});

describe('commands in the docs', () => {
  const commands = guides.flatMap(({ path, text }) => petrelLines(text).map((line) => ({ path, line })));

  it('are in the table of commands, with their options', () => {
    const wrong = commands.filter(({ line }) => !isCommand(line)).map(({ path, line }) => `${path}: ${line}`);
    expect(wrong).toEqual([]);
  });

  it('are all in the page that is made from their table', () => {
    expect(withoutLinks(page('docs/look-up/commands.md')) === commandReference(COMMANDS), 'run: npm run docs').toBe(
      true,
    );
  });

  it('of npm are scripts of the package', () => {
    const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
      readonly scripts: Readonly<Record<string, string>>;
    };
    const named = guides.flatMap(({ text }) =>
      [...text.matchAll(/npm run ([a-z:]+)/g)].map((match) => String(match[1])),
    );
    expect(named.filter((name) => !Object.hasOwn(scripts, name))).toEqual([]);
    expect(page('README.md')).toContain('npm test');
  });

  it('are not too few', () => {
    expect(commands.length).toBeGreaterThan(50);
  });
});

const hasRecipe = (name: string) => existsSync(join(ROOT, 'examples', name, 'recipe.yaml'));

describe('an example', () => {
  it.each(examples)('%s has a page that the list of examples names', (name) => {
    expect(page('examples/README.md')).toContain(`(${name}/README.md)`);
    expect(page(`examples/${name}/README.md`)).toMatch(/(petrel run |node )examples\//);
  });

  it.each(examples.filter(hasRecipe))('%s has a recipe that can be run', (name) => {
    expect(page(`examples/${name}/README.md`)).toContain(`petrel run examples/${name}`);
    expect(runIssues(loadRecipe(join(ROOT, 'examples', name), [], ROOT).recipe)).toEqual([]);
  });

  const made = examples.flatMap((name) =>
    petrelLines(page(`examples/${name}/README.md`))
      .filter((line) => line.startsWith('petrel data '))
      .map((line) => ({ name, line })),
  );

  it.each(made)('$name: the file is what `$line` makes', async ({ name, line }) => {
    const words = line.split(/\s+/).slice(1);
    const file = words[words.indexOf('--out') + 1] ?? '';
    await cli.petrel(...words);
    const rows = readFileSync(join(cli.home, file));
    rmSync(join(cli.home, file)); // the next example also has a file with this name
    expect(rows.equals(readFileSync(join(ROOT, 'examples', name, file)))).toBe(true);
  });

  it('has such a command for every file of rows', () => {
    const rows = examples.flatMap((name) =>
      readdirSync(join(ROOT, 'examples', name))
        .filter(
          (file) =>
            file.endsWith('.jsonl') && !page(`examples/${name}/README.md`).includes(`\`${file}\` is written by hand`),
        )
        .map((file) => `${name}/${file}`),
    );
    expect(made.map(({ name, line }) => `${name}/${/--out (\S+)/.exec(line)?.[1]}`).sort()).toEqual(rows.sort());
  });

  it('00 starts from weights that its command makes', async () => {
    const folder = join(ROOT, 'examples/00-arithmetic-sft');
    await cli.petrel('model', 'init', join(folder, 'base'), '--out', 'fresh', '--seed', '1');
    expect(page('examples/00-arithmetic-sft/README.md')).toContain('petrel model init base --out fresh --seed 1');
    expect(
      readFileSync(join(cli.home, 'fresh/model.safetensors')).equals(
        readFileSync(join(folder, 'fresh/model.safetensors')),
      ),
    ).toBe(true);
  });
});

it('the page on EC2 shows a fleet.yaml with every key', () => {
  const shown: unknown = parse(blocks(page('docs/do/fleet-on-ec2.md'), 'yaml')[0] ?? '');
  const checked = checkFleetSpec(shown, 'docs/do/fleet-on-ec2.md');
  expect(shown).toEqual(checked); // so no default is left out
});

describe('the page on recipes', () => {
  it('shows a recipe that can be run', () => {
    const result = checkRecipe(parse(blocks(page('docs/do/recipes.md'), 'yaml')[0] ?? ''));
    expect(result.ok && runIssues(result.recipe)).toEqual([]);
  });

  it('has a reference of all keys that is up to date', () => {
    expect(withoutLinks(page('docs/look-up/recipe-keys.md')) === recipeReference(), 'run: npm run docs').toBe(true);
  });

  it('shows what the plan of an example prints', async () => {
    const { out } = await cli.petrel('plan', join(ROOT, 'examples/01-arithmetic-grpo'));
    const shown = blocks(page('docs/do/recipes.md'), '').find((block) => block.startsWith('Arithmetic\n')) ?? '-';
    expect(out).toContain(shown);
  });
});

describe('the page on a loss of one’s own', () => {
  const folder = join(ROOT, 'examples/11-own-loss');
  const files = ['my-loss.ts', 'my-advantage.ts'];

  it('shows the files of its example, below their head, and the keys of its recipe', () => {
    const shown = blocks(page('docs/learn/change-a-loss.md'), 'ts').filter((block) => block.startsWith('import '));
    const code = files.map((name) => readFileSync(join(folder, name), 'utf8').replace(/^\/\*\*[\s\S]*?\*\/\n/, ''));
    expect(shown).toEqual(code);
    const { recipe } = loadRecipe(folder, [], ROOT);
    const named = blocks(page('docs/learn/change-a-loss.md'), 'yaml').join('');
    expect(named).toContain(`loss_mode: ./${basename(recipe.actor.policy_loss.loss_mode)}`);
    expect(named).toContain(`adv_estimator: ./${basename(recipe.algorithm.adv_estimator)}`);
  });

  it('names types that the files have', async () => {
    const tsc = join(ROOT, 'node_modules/.bin/tsc');
    const options = ['--noEmit', '--ignoreConfig', '--strict', '--skipLibCheck', '--module', 'nodenext'];
    const more = ['--target', 'es2022', '--lib', 'es2023', '--types', 'node'];
    await promisify(execFile)(tsc, [...options, ...more, ...files.map((name) => join(folder, name))], { cwd: ROOT });
  });
});

describe('the page on programs', () => {
  const programs = blocks(page('docs/do/library.md'), 'ts');

  it('has programs that the types of petrel accept', async () => {
    const calls = [...(programs[0] ?? '').matchAll(/\b(?:stack|run)\.(\w+)\(/g)].map((match) => match[1]);
    expect(calls).toEqual(['start', 'follow', 'metrics', 'samples', 'verify']);
    const folder = mkdtempSync(join(tmpdir(), 'petrel-library-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    programs.forEach((text, i) => writeFileSync(join(folder, `program-${i}.mts`), text));
    const compilerOptions = {
      ...{ strict: true, noEmit: true, skipLibCheck: true, module: 'nodenext', target: 'es2023', types: ['node'] },
      typeRoots: [join(ROOT, 'node_modules/@types')],
      paths: { petrel: [join(ROOT, 'dist/api/index.d.ts')] },
    };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.mts'] }));
    await promisify(execFile)(join(ROOT, 'node_modules/.bin/tsc'), ['--project', folder], { cwd: ROOT });
  });
});

describe('the page on the store', async () => {
  const python = process.env['PETREL_PYTHON'] ?? 'python3';
  const ready = await promisify(execFile)(python, ['-c', 'import numpy, safetensors.numpy']).then(
    () => true,
    () => false,
  );

  it.skipIf(!ready)('has a Python program that reads a run', async () => {
    const { runId } = await buildRun(await cli.store(), { done: 2 });
    const program = blocks(page('docs/do/store.md'), 'python')[0] ?? '';
    const { stdout } = await promisify(execFile)(python, ['-c', program, join(cli.home, 'store/runs', runId)]);
    expect(stdout).toMatch(/^iteration 2: 4 samples, mean reward -?[\d.]+, applied$/m);
  });
});

function markdownUnder(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return SKIPPED.has(entry.name) ? [] : markdownUnder(path);
    return entry.name.endsWith('.md') ? [path] : [];
  });
}

/** Targets of links outside of code. */
function linksOf(text: string): string[] {
  const prose = text.replace(/^```[\s\S]*?^```/gm, '').replace(/`[^`\n]*`/g, '');
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map((match) => String(match[1]));
}

function leadsSomewhere(from: string, link: string): boolean {
  if (/^[a-z]+:/.test(link)) return true;
  const [path = '', heading] = link.split('#');
  const target = path === '' ? join(ROOT, from) : resolve(ROOT, dirname(from), path);
  if (!existsSync(target)) return false;
  return heading === undefined || headingsOf(readFileSync(target, 'utf8')).includes(heading);
}

/** Anchors of headings, as GitHub builds them. */
function headingsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.+)$/gm)].map((match) =>
    String(match[1])
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

/** Fenced blocks of a language, in order. */
function blocks(text: string, language: string): string[] {
  return [...text.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)]
    .filter((match) => match[1] === language)
    .map((match) => String(match[2]));
}

/** Text in code that starts with `petrel `: lines of shell blocks, and inline code. */
function petrelLines(text: string): string[] {
  const lines = blocks(text, 'sh').flatMap((block) => block.split('\n'));
  const inline = [...text.replace(/^```[\s\S]*?^```/gm, '').matchAll(/`([^`\n]+)`/g)].map((match) => String(match[1]));
  return [...lines, ...inline]
    .filter((line) => /^petrel [a-z]/.test(line))
    .map((line) => line.replace(/\s+(?:#|\| ).*$/, ''));
}

function isCommand(line: string): boolean {
  const words = line.split(/\s+/).slice(1);
  const spec = COMMANDS.find(({ name }) => name === words.slice(0, name.split(' ').length).join(' '));
  if (spec === undefined) return COMMANDS.some(({ name }) => name.startsWith(`${words.join(' ')} `));
  return words.filter((word) => /^--?[a-z]/.test(word)).every((flag) => hasOption(spec, flag));
}

function hasOption({ options = [] }: CommandSpec, flag: string): boolean {
  return flag === '--json' || options.some(({ flags }) => flags.split(/[ ,]+/).includes(flag));
}
