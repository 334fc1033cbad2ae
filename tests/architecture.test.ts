/** Checks the import rules of ARCHITECTURE.md against the real files. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packageRoot } from '../infra/home.ts';
import { codeOf, importsOf, sourcesIn, type SourceFile } from './architecture/sources.ts';
import { cyclesOf, importGraph, loadedBy, roomGraphs, unreached } from './architecture/graph.ts';

const ROOT = packageRoot();

interface FolderRule {
  /** Folders of petrel that it may import. */
  readonly folders: readonly string[];
  /** Folders of which it may import only types. A path names a part of a folder. */
  readonly types?: readonly string[];
  /** A folder in it whose files may import more folders. */
  readonly inner?: { readonly folder: string; readonly folders: readonly string[] };
  /** What its test files may import in addition. */
  readonly tests?: readonly string[];
  /** Packages that it may import; '*' allows any package of package.json. 'node:*' are the built-in modules. */
  readonly packages: readonly string[];
}

const RULES: Readonly<Record<string, FolderRule>> = {
  core: { folders: ['core'], packages: ['zod', 'croner'] },
  native: { folders: ['core', 'models', 'native'], tests: ['log', 'infra'], packages: ['node:*'] },
  models: { folders: ['core', 'models'], packages: ['node:*', '*'] },
  rewards: { folders: ['core', 'rewards'], packages: ['node:*'] },
  log: {
    folders: ['core', 'log'],
    tests: ['infra', 'tests'],
    packages: ['node:*', 'zod', 'hash-wasm'],
  },
  infra: { folders: ['core', 'log', 'infra'], packages: ['node:*', '*'] },
  activities: {
    folders: ['core', 'models', 'rewards', 'activities'],
    types: ['infra', 'log', 'native'],
    packages: ['node:*', 'zod', '@temporalio/activity', '@temporalio/common'],
  },
  workflows: {
    folders: ['core/ids.ts', 'core/wire', 'workflows'],
    types: ['core', 'activities'],
    packages: ['@temporalio/workflow'],
  },
  workers: {
    folders: ['core', 'native', 'models', 'rewards', 'log', 'infra', 'activities', 'workflows', 'workers'],
    packages: ['node:*', '*'],
  },
  api: { folders: ['core', 'models', 'native/model', 'rewards', 'log', 'infra', 'api'], packages: ['node:*', '*'] },
  cli: {
    folders: ['core', 'api/index.ts', 'cli'],
    // Each program of a machine is bundled into one file of its own, which must stay small.
    inner: { folder: 'cli/machine', folders: ['api'] },
    tests: ['api', 'log', 'infra', 'models'],
    packages: ['node:*', 'commander'],
  },
  setup: { folders: ['setup'], tests: ['infra'], packages: ['node:*'] },
  bench: {
    folders: [
      'core',
      'native',
      'models',
      'rewards',
      'log',
      'infra',
      'activities',
      'workflows',
      'workers',
      'api',
      'bench',
      'tests/fault-proxy.ts',
      'tests/store-traffic.ts',
    ],
    packages: ['node:*', '*', 'hyparquet-writer'],
  },
  tests: {
    folders: [
      'core',
      'native',
      'models',
      'rewards',
      'log',
      'infra',
      'activities',
      'workflows',
      'workers',
      'api',
      'cli',
      'bench',
      'setup',
      'tests',
    ],
    packages: ['node:*', '*'],
  },
};

const TOP_FOLDERS = [
  'activities',
  'api',
  'bench',
  'cli',
  'core',
  'docs',
  'engines',
  'examples',
  'infra',
  'log',
  'models',
  'native',
  'rewards',
  'setup',
  'tests',
  'workers',
  'workflows',
];

/** Places where `any` is used as a type. */
const ANY = /(?:[:<,|&(]\s*|\bas\s+|\bextends\s+|=\s*)any\b(?!['`\w-])(?=\s*(?:[;,)>\]|&=[{]|$))/m;

const files = Object.keys(RULES).flatMap((folder) => sourcesIn(ROOT, folder));
/** Test files, and files that only tests may use. */
const isTest = (path: string) => /\.test(?:-support)?\.ts$/.test(path);

describe('the folders', () => {
  it('at the top are those of the architecture', () => {
    const found = readdirSync(ROOT, { withFileTypes: true })
      .filter(
        (entry) =>
          entry.isDirectory() && !entry.name.startsWith('.') && !['node_modules', 'dist', 'build'].includes(entry.name),
      )
      .map(({ name }) => name);
    expect(TOP_FOLDERS).toEqual(expect.arrayContaining(found));
  });

  it('and files have meaningful names', () => {
    const empty = files.filter(({ path }) => /(^|\/)(utils?|helpers?|common|misc|managers?)(\/|\.|$)/.test(path));
    expect(empty.map(({ path }) => path)).toEqual([]);
  });
});

describe('imports', () => {
  it.each(Object.keys(RULES))('of %s follow its rule', (folder) => {
    const broken = files
      .filter(({ path }) => path.startsWith(`${folder}/`))
      .flatMap((file) => brokenImports(file, RULES[folder] as FolderRule));
    expect(broken).toEqual([]);
  });

  it('of test files are made by tests only', () => {
    const users = files.filter(({ path }) => !isTest(path) && !path.startsWith('tests/'));
    expect(
      users.filter((file) => importsOf(file).some(({ specifier }) => isTest(specifier))).map(({ path }) => path),
    ).toEqual([]);
  });

  it('name files with their .ts ending, so that they run unbuilt too', () => {
    const bare = files.flatMap((file) =>
      importsOf(file)
        .filter(({ specifier }) => /^\.\.?\//.test(specifier) && !/\.(ts|mjs|js|json)$/.test(specifier))
        .map(({ specifier }) => `${file.path}: ${specifier}`),
    );
    expect(bare).toEqual([]);
  });
});

describe('api/index.ts', () => {
  const index = files.find(({ path }) => path === 'api/index.ts');

  it('has no code of its own, and gives nothing another name', () => {
    const statements = (index?.code ?? '').split(';').map((statement) => statement.trim());
    expect(statements.filter((text) => text !== '' && !/^export (?:type )?\{[\w\s,]+\} from ''$/.test(text))).toEqual(
      [],
    );
    expect(index?.code).not.toMatch(/\bas\b/);
  });

  it('has everything that the command line uses, and the command line is its user', () => {
    const users = files.filter(({ path, text }) => /^cli\/(?!machine\/)/.test(path) && text.includes('api/index.ts'));
    expect(users.filter(({ path }) => path.startsWith('cli/commands/')).length).toBeGreaterThan(40);
  });

  it('names files that do nothing when they are loaded, so that the bundle of a command leaves the others out', () => {
    const statement =
      /^(?!import\b|export\b|const\b|let\b|(?:async )?function\b|(?:abstract )?class\b|interface\b|type\b)\w/m;
    expect(statement.test('register(1);')).toBe(true);
    const busy = files.filter(
      ({ path, code }) =>
        path.startsWith('api/') && !isTest(path) && (statement.test(code) || /^import ''/m.test(code)),
    );
    expect(busy.map(({ path }) => path)).toEqual([]);
  });
});

describe('the import graph', () => {
  const graph = importGraph(files);
  /** The graph without tests. */
  const productGraph = (all: ReadonlyMap<string, ReadonlySet<string>>) =>
    new Map([...all].filter(([path]) => !isTest(path) && !path.startsWith('tests/')));

  it('has no cycle of files, types included', () => {
    expect(cyclesOf(graph)).toEqual([]);
  });

  it('keeps the engine off the thread that answers messages, so that heavy work blocks no event loop', () => {
    const loaded = [...loadedBy('workers/main.ts', files)];
    expect(loaded).toContain('workers/worker.ts');
    const engine = loaded.filter((path) => /^native\/|^workers\/engine\//.test(path));
    const harmless = ['addon-file', 'binding', 'package-root', 'ticks'].map((name) => `native/${name}.ts`);
    expect(engine.sort()).toEqual([
      ...harmless,
      'workers/engine/engines/native/progress.ts',
      'workers/engine/engines/profile.ts',
      'workers/engine/process/client.ts',
    ]);
    expect(loadedBy('workers/engine/process/thread.ts', files)).toContain('workers/engine/host/host.ts');
  });

  it('lets workers know the native engine in one folder', () => {
    const users = [...productGraph(graph)].filter(
      ([path, targets]) => path.startsWith('workers/') && [...targets].some((target) => target.startsWith('native/')),
    );
    expect(users.map(([path]) => path).filter((path) => !path.startsWith('workers/engine/engines/native/'))).toEqual(
      [],
    );
    expect(users.length).toBeGreaterThan(2);
  });

  it('has no cycle of rooms: neither of the top folders, nor of what lies side by side in a folder', () => {
    expect(
      [...roomGraphs(productGraph(graph))].flatMap(([folder, rooms]) => cyclesOf(rooms).map((c) => [folder, c])),
    ).toEqual([]);
  });

  it('shows a cycle of rooms', () => {
    const rooms = roomGraphs(
      new Map([
        ['a/b/one.ts', new Set(['a/c/two.ts'])],
        ['a/c/three.ts', new Set(['a/b/four.ts', 'd/five.ts'])],
      ]),
    );
    expect(cyclesOf(rooms.get('a') ?? new Map())).toEqual([['b', 'c']]);
    expect(cyclesOf(rooms.get('') ?? new Map())).toEqual([]);
  });

  it('shows a cycle of a top folder with the leaves of another, and of workers with its engine', () => {
    const top = (edges: Record<string, string[]>) =>
      cyclesOf(
        roomGraphs(new Map(Object.entries(edges).map(([from, to]) => [from, new Set(to)]))).get('') ?? new Map(),
      );
    expect(top({ 'log/a/one.ts': ['infra/b/leaf.ts'], 'infra/c/two.ts': ['log/d/three.ts'] })).toEqual([
      ['infra', 'log'],
    ]);
    const down = { 'workers/one.ts': ['workers/engine/a/two.ts'] };
    expect(top(down)).toEqual([]);
    expect(top({ ...down, 'workers/engine/b/three.ts': ['workers/leaf.ts'] })).toEqual([['workers', 'workers/engine']]);
  });

  it('reaches every file from an entry point: a command, a process, a test or a script', () => {
    expect(unreached(ROOT, files, graph)).toEqual([]);
  });

  it('shows a cycle and an unreached file where there is one', () => {
    const of = (edges: Record<string, string[]>) =>
      new Map(Object.entries(edges).map(([from, to]) => [from, new Set(to)] as const));
    expect(cyclesOf(of({ a: ['b'], b: ['c'], c: ['a'], d: ['a'] }))).toEqual([['a', 'b', 'c']]);
    expect(cyclesOf(of({ a: ['b', 'c'], b: ['c'], c: [] }))).toEqual([]);
    const alone: SourceFile = { path: `core/${'nobody'}-knows-this.ts`, text: '', code: '' };
    const more = [...files, alone];
    expect(unreached(ROOT, more, importGraph(more))).toEqual([alone.path]);
  });
});

describe('the code', () => {
  const offenders = (pattern: RegExp, except: (path: string) => boolean = () => false) =>
    files.filter((file) => !except(file.path) && pattern.test(file.code)).map(({ path }) => path);

  it('has no default exports, but for the settings files that tools ask for', () => {
    expect(offenders(/^export default\b|\bas default\b/m, (path) => path.endsWith('.config.ts'))).toEqual([]);
  });

  it('builds and parses the keys of a run in core/records only; the verifier has its own copy', () => {
    const spelled = /[`']runs\/\$\{|\[0-9a-f\]\{64\}\)?\\\.json/;
    expect(['`runs/$', '{runId}/run.json`'].join('')).toMatch(spelled);
    expect(String(/^(\d+)-([0-9a-f]{64})\.json$/)).toMatch(spelled);
    const apart = (path: string) => /^(core\/records|api\/ledger|tests|bench)\/|\.test(-support)?\.ts$/.test(path);
    expect(offenders(spelled, apart)).toEqual([]);
  });

  it('has no `any`', () => {
    expect(offenders(ANY)).toEqual([]);
  });

  it('puts nothing in the place of a missing element of an array of numbers: core/at.ts throws', () => {
    const silent = /\[(?:[a-z]|\w+ [+*-] \w+)\]\)? \?\? (?:-?\d|''|""|null\b|new )/;
    expect('tokens[i] ?? 0').toMatch(silent);
    expect('offsets[b + 1] ?? 0').toMatch(silent);
    expect('sums[name] ?? 0').not.toMatch(silent);
    const apart = (path: string) => !/^(workers|activities|workflows|native|models|core\/rl|api\/ledger)\//.test(path);
    expect(
      offenders(silent, (path) => apart(path) || isTest(path) || /^(models\/template|native\/testing)\//.test(path)),
    ).toEqual([]);
  });

  it('has no enums and no @ts-ignore', () => {
    expect(offenders(/^\s*(?:export\s+)?(?:const\s+|declare\s+)?enum\s/m)).toEqual([]);
    expect(
      files
        .filter(({ path, text }) => path !== 'tests/architecture.test.ts' && /@ts-(?:ignore|nocheck)/.test(text))
        .map(({ path }) => path),
    ).toEqual([]);
  });

  it('of core uses neither clock nor randomness', () => {
    const impure = files.filter(
      ({ path, code }) =>
        path.startsWith('core/') &&
        !isTest(path) &&
        /\b(?:Date\.now|new Date\(\)|Math\.random|performance\.now|process\.|setTimeout)/.test(code),
    );
    expect(impure.map(({ path }) => path)).toEqual([]);
  });
});

describe('this test', () => {
  it('finds imports of every form, and distinguishes types from values', () => {
    const text =
      "import type { A } from 'a';\nimport { type B, type C } from 'b';\nimport { type D, e } from 'c';\nexport * from './d.ts';\nconst f = await import('./f.ts');\nimport 'g';\nexport type { H } from 'h';";
    expect(
      importsOf({ path: 'x.ts', text, code: text }).map(({ specifier, typeOnly }) => `${specifier} ${typeOnly}`),
    ).toEqual(['a true', 'b true', 'c false', './d.ts false', './f.ts false', 'g false', 'h true']);
  });

  it('finds a broken rule', () => {
    const file = (path: string, text: string): SourceFile => ({ path, text, code: text });
    expect(
      brokenImports(
        file('core/x.ts', "import { y } from '../infra/y.ts';\nimport { readFileSync } from 'node:fs';"),
        RULES['core'] as FolderRule,
      ),
    ).toHaveLength(2);
    expect(
      brokenImports(
        file('workflows/x.ts', "import type { R } from '../core/recipe/index.ts';"),
        RULES['workflows'] as FolderRule,
      ),
    ).toEqual([]);
    expect(
      brokenImports(
        file('workflows/x.ts', "import { R } from '../core/recipe/index.ts';"),
        RULES['workflows'] as FolderRule,
      ),
    ).toHaveLength(1);
    expect(
      brokenImports(file('cli/x.ts', "import { m } from '../workflows/train.ts';"), RULES['cli'] as FolderRule),
    ).toHaveLength(1);
    const past = "import { startRun } from '../../api/runs/start.ts';";
    expect(brokenImports(file('cli/commands/x.ts', past), RULES['cli'] as FolderRule)).toHaveLength(1);
    expect(brokenImports(file('cli/machine/x.ts', past), RULES['cli'] as FolderRule)).toEqual([]);
  });

  it('distinguishes the type any from the word', () => {
    const types = [
      'let a: any;',
      'x as any)',
      'Map<string, any>',
      'type A = any;',
      'f(a: any, b)',
      'any_: any[]',
      'a | any;',
      'Promise<any>',
      'type B<T extends any> = T;',
    ];
    const words = ["it('any')", '// any', 'expect.any(Number)', 'AbortSignal.any([a])', 'const any = 1', 'company: x'];
    expect(types.filter((text) => !ANY.test(codeOf(text)))).toEqual([]);
    expect(words.filter((text) => ANY.test(codeOf(text)))).toEqual([]);
  });

  it('reads enough files', () => {
    expect(files.length).toBeGreaterThan(100);
  });
});

function brokenImports(file: SourceFile, rule: FolderRule): string[] {
  return importsOf(file)
    .filter(
      ({ specifier, typeOnly }) =>
        !(specifier.startsWith('.')
          ? allowsFile(rule, file, specifier, typeOnly)
          : allowsPackage(rule, file, specifier)),
    )
    .map(({ specifier }) => `${file.path} imports ${specifier}`);
}

function allowsFile(
  { folders, types = [], inner, tests = [] }: FolderRule,
  file: SourceFile,
  specifier: string,
  typeOnly: boolean,
): boolean {
  const target = posix.normalize(posix.join(dirname(file.path), specifier));
  const within = (folder: string) => target === folder || target.startsWith(`${folder}/`);
  return (
    folders.some(within) ||
    (typeOnly && types.some(within)) ||
    (inner !== undefined && file.path.startsWith(`${inner.folder}/`) && inner.folders.some(within)) ||
    (isTest(file.path) && ['tests', ...tests].some(within))
  );
}

const PACKAGES = Object.keys(
  (JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { readonly dependencies: object }).dependencies,
);
const TEST_PACKAGES = ['vitest', 'vitest/config', 'vitest/node', 'fast-check'];

/** Every test may use Node and the test packages. */
function allowsPackage({ packages }: FolderRule, file: SourceFile, specifier: string): boolean {
  const loose = isTest(file.path) || file.path.startsWith('tests/') || file.path.startsWith('bench/');
  if (specifier.startsWith('node:')) return packages.includes('node:*') || loose;
  if (loose && TEST_PACKAGES.includes(specifier)) return true;
  const name = specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
  return packages.includes(name) || (packages.includes('*') && PACKAGES.includes(name));
}
