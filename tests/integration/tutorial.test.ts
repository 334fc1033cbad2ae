// @module-tag long
/**
 * Runs every command of the tutorial (docs/learn), in its order: one shell block after the other, as a reader would.
 */
import { spawn } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packageRoot } from '../../infra/home.ts';
import { poll } from '../../infra/poll.ts';
import { finish, petrelBin, PetrelUser, type Ran } from '../black-box/petrel.ts';
import { type JoinedMachine, startMachine } from '../joined-machine.ts';
import { patienceMs } from '../patience.ts';
import { type S3Server, startSeaweed } from '../s3-servers.ts';

const pages = ['your-rows', 'curves', 'after-a-kill', 'export', 'second-machine', 'change-a-loss'];
const onSecondMachine = '# on the second machine\n';

const user = new PetrelUser();
let folder = user.folder;
let s3: S3Server;
let second: JoinedMachine | undefined;

beforeAll(async () => {
  const bin = join(user.folder, 'bin');
  mkdirSync(bin);
  symlinkSync(petrelBin, join(bin, 'petrel')); // as npm link does
  s3 = await startSeaweed(join(user.folder, 's3'));
});
afterAll(async () => {
  await second?.kill();
  await user.remove();
  await s3.stop();
});

/** The shell blocks of a page, with the address and the bucket of this test. */
function blocksOf(page: string): string[] {
  const text = readFileSync(join(packageRoot(), 'docs/learn', `${page}.md`), 'utf8');
  return [...text.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block = '']) =>
    block.replaceAll('10.0.0.5', '127.0.0.1').replaceAll('s3://my-bucket/petrel', s3.url('tutorial')),
  );
}

/** Runs a block where the last one ended. Everything that it starts has the environment of a user. */
async function run(block: string): Promise<Ran> {
  const env = user.env({ PATH: `${join(user.folder, 'bin')}${delimiter}${process.env['PATH']}`, ...s3.env });
  const here = join(user.folder, 'here');
  const child = spawn('bash', ['-eo', 'pipefail', '-c', `${block}\npwd > '${here}'`], { cwd: folder, env });
  child.stdin.end();
  const ran = await finish(child, block);
  if (ran.code === 0) folder = readFileSync(here, 'utf8').trim();
  return ran;
}

/** Starts the program of a block in a home of its own, and waits until it has joined. */
async function runOnSecondMachine(block: string): Promise<Ran> {
  const home = join(user.folder, 'second');
  mkdirSync(home, { mode: 0o700 });
  const [, program = ''] = /^node (\S+)$/m.exec(block) ?? [];
  copyFileSync(join(folder, '..', program), join(home, program));
  const machine = startMachine({ home, words: [program], env: s3.env });
  second = machine;
  const joined = await poll(() => machine.said().includes('joined '), { everyMs: 50, timeoutMs: patienceMs });
  return { code: joined ? 0 : -1, out: machine.said(), err: '', json: () => undefined as never };
}

interface Listed {
  readonly iteration: number;
  readonly stateDigest: string;
}

const stateAfter = async (name: string, wanted: number): Promise<string | undefined> =>
  (await user.petrelWith({ env: s3.env }, 'ckpt', 'ls', name, '--json'))
    .json<readonly Listed[]>()
    .find(({ iteration }) => iteration === wanted)?.stateDigest;

describe.each(pages)('the page %s of the tutorial', (page) => {
  it('has commands that succeed', async () => {
    for (const block of blocksOf(page)) {
      const ran = await (block.startsWith(onSecondMachine) ? runOnSecondMachine(block) : run(block));
      expect(ran.code, `${block}\n${ran.out}\n${ran.err}`).toBe(0);
    }
  });
});

describe('at its end', () => {
  it('the model has learned what the first page says', async () => {
    const rows = (await user.petrel('metrics', 'additions', '--json')).json<
      readonly { readonly position: number; readonly metrics: Readonly<Record<string, number>> }[]
    >();
    const accuracies = rows.flatMap(({ metrics }) => metrics['val-core/additions/acc/mean@1'] ?? []);
    expect(accuracies).toHaveLength(3);
    expect(accuracies.at(-1)).toBeGreaterThan((accuracies[0] ?? 1) + 0.3);
  });

  it('neither the kill nor the second machine has changed a bit', async () => {
    const state = await stateAfter('additions', 20);
    expect(state).toMatch(/^[0-9a-f]{64}$/);
    expect([await stateAfter('killed', 20), await stateAfter('both', 20)]).toEqual([state, state]);
  });

  it('the exported model is there, and the second machine has worked', () => {
    expect(existsSync(join(folder, '../trained/model.safetensors'))).toBe(true);
    expect(second?.said()).toMatch(/joined \S+ as lab-/);
  });
});
