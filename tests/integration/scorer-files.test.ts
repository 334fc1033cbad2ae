/**
 * A scorer of several files that names packages: on a machine that has neither its folder nor anything in its cache.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Tree } from '../../core/recipe/index.ts';
import { modulesOf } from '../../core/records/schema.ts';
import { keys } from '../../core/records/keys.ts';
import { testPlaces } from '../../rewards/sandbox/places.test-support.ts';
import { LoopUnderTest } from '../loop-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';

const loop = new LoopUnderTest();
const folder = join(loop.home, 'theirs');
const wheels = join(loop.home, 'wheels');
const pip = { PIP_NO_INDEX: '1', PIP_FIND_LINKS: wheels };
let hash: string;

beforeAll(async () => {
  hash = makeWheel();
  Object.assign(process.env, pip);
  await loop.up();
});
afterAll(async () => {
  for (const name of Object.keys(pip)) delete process.env[name];
  await loop.remove();
});

/** A package of one module. Returns the digest of its wheel. */
function makeWheel(): string {
  mkdirSync(wheels, { recursive: true });
  const path = join(wheels, 'petrel_tiny-1.0-py3-none-any.whl');
  const program = `
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as wheel:
    wheel.writestr("petrel_tiny.py", "def half(x): return x / 2\\n")
    wheel.writestr("petrel_tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: petrel_tiny\\nVersion: 1.0\\n")
    wheel.writestr("petrel_tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr("petrel_tiny-1.0.dist-info/RECORD", "")
`;
  execFileSync('python3', ['-c', program, path]);
  return createHash('sha256').update(readFileSync(path)).digest('hex');
}

function write(files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
}

const typescript = {
  'score.ts': `import { share } from './lib/share.ts';\nimport { twice } from 'tiny-twice';\nexport const computeScore = ({ solutionStr }: { solutionStr: string }) => ({ score: share(solutionStr) / 2, twice: twice(1) });`,
  'lib/share.ts': `export const share = (text: string): number => [...text].filter((c) => c === '7').length / Math.max(1, text.length);`,
  'node_modules/tiny-twice/package.json': '{"name":"tiny-twice","exports":"./twice.js","type":"module"}',
  'node_modules/tiny-twice/twice.js': 'export const twice = (x) => 2 * x;',
};
const python = {
  'score.py': `from lib import share\nfrom lib.names import SEVEN\nimport petrel_tiny\n\ndef compute_score(data_source, solution_str, ground_truth, extra_info):\n    return {"score": petrel_tiny.half(share.of(solution_str, SEVEN)), "twice": 2}\n`,
  'lib/__init__.py': '',
  'lib/names.py': 'SEVEN = "7"\n',
  'lib/share.py': 'def of(text, c):\n    return text.count(c) / max(1, len(text))\n',
};

/** A run whose worker finds neither the scorer's folder nor a cache. */
async function runElsewhere(custom: Tree, sandbox: boolean): Promise<StartedRun> {
  const run = await loop.create({
    trainer: { total_training_steps: 2 },
    reward: { custom_reward_function: { deterministic: true, ...custom }, sandbox, timeout: 30 },
  });
  rmSync(folder, { recursive: true });
  rmSync(join(loop.home, 'cache'), { recursive: true, force: true });
  await loop.drive(run);
  await loop.reaches(run, 'completed');
  return run;
}

const twiceOf = async (run: StartedRun) =>
  (await loop.iterations(run)).map(({ batch }) => Number(batch.metrics['reward_extra/twice/mean']));

describe.each(testPlaces().length === 0 ? [false] : [false, true])('with reward.sandbox: %s', (sandbox) => {
  it('a scorer in TypeScript and one in Python give the same run', async () => {
    write(typescript);
    const first = await runElsewhere({ path: join(folder, 'score.ts') }, sandbox);
    write(python);
    writeFileSync(join(loop.home, 'list.txt'), `petrel_tiny==1.0 --hash=sha256:${hash}\n`);
    const requirements = join(loop.home, 'list.txt');
    const second = await runElsewhere({ path: join(folder, 'score.py'), requirements }, sandbox);
    expect(await loop.states(second)).toEqual(await loop.states(first));
    expect([...(await twiceOf(first)), ...(await twiceOf(second))]).toEqual([2, 2, 2, 2]);
    for (const run of [first, second]) {
      const revision = await run.log.revision();
      expect(modulesOf(revision.inputs)).toHaveLength(2);
      for (const digest of modulesOf(revision.inputs))
        expect(await loop.store.head(keys.blob(run.runId, digest))).toBeDefined();
    }
  });
});

describe('at the start of a run', () => {
  const refused = (custom: Tree) =>
    loop.create({ reward: { custom_reward_function: custom } }).catch((error: unknown) => error);

  it('an import that is nowhere is refused by name and line', async () => {
    write({ ...typescript, 'lib/share.ts': `// one\nimport './lost.ts';` });
    expect(await refused({ path: join(folder, 'score.ts') })).toMatchObject({
      message: 'the scorer imports ./lost.ts, and there is no such file',
      where: './lib/share.ts:2',
    });
  });

  it('an error in another file of the scorer names that file, and not a copy of it', async () => {
    write({ ...typescript, 'lib/share.ts': `export const share = undefined.x;` });
    const error = (await refused({ path: join(folder, 'score.ts') })) as Error;
    expect(error.message).toContain('./lib/share.ts:1');
    expect(error.message).not.toContain('petrel-scorer-');
  });

  it('a package with another digest than the one that is named is refused', async () => {
    write(python);
    writeFileSync(join(loop.home, 'wrong.txt'), `petrel_tiny==1.0 --hash=sha256:${'0'.repeat(64)}\n`);
    const custom = { path: join(folder, 'score.py'), requirements: join(loop.home, 'wrong.txt') };
    expect(await refused(custom)).toMatchObject({
      code: 'NoScorerPackages',
      message: expect.stringContaining('petrel_tiny==1.0') as string,
    });
    expect(existsSync(join(loop.home, 'cache', 'scorer-packages'))).toBe(true);
  });
});
