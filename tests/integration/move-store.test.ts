// @module-tag long
/**
 * Moves a run to another store by the commands of docs/do/operations.md: the test reads the page and runs its lines.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { verifyLedger } from '../../api/ledger/verify.ts';
import { packageRoot } from '../../infra/home.ts';
import { openStore } from '../../infra/store/open.ts';
import { RunLog } from '../../log/run/run-log.ts';
import { runWords } from '../cli.ts';
import { LoopUnderTest } from '../loop-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';
import { startSeaweed, testBucket } from '../s3-servers.ts';
import type { S3Server } from '../s3-servers.ts';

const recipe = {
  actor: { ppo_mini_batch_size: 2, ppo_epochs: 20 },
  trainer: { total_training_steps: 6, save_freq: 2 },
};

const loop = new LoopUnderTest();
const oldStore = join(loop.home, 'store');
let server: S3Server;
let undisturbed: string[];
beforeAll(async () => {
  server = await startSeaweed(join(loop.home, 'seaweed'));
  server.use(''); // the stack finds the store when it starts
  await loop.up();
  const run = await loop.start(recipe);
  await loop.reaches(run, 'completed');
  undisturbed = await loop.states(run);
}); // a server and a stack
afterAll(async () => {
  await loop.remove();
  await server.stop();
});

/** The lines of the shell block that contains this text, with values in place of the words in angle brackets. */
function documented(sign: string, words: Readonly<Record<string, string>>): string[] {
  const blocks = [
    ...readFileSync(join(packageRoot(), 'docs/do/operations.md'), 'utf8').matchAll(/```sh\n(.*?)```/gs),
  ].map(([, block]) => block ?? '');
  const block = blocks.find((text) => text.includes(sign)) ?? '';
  return block
    .trim()
    .split('\n')
    .map((line) => line.replaceAll(/<([^>]+)>/g, (_, word: string) => words[word] ?? `<${word}>`));
}

async function act(line: string): Promise<void> {
  const [program, ...words] = line.split(' ');
  if (program === 'petrel') await runWords(loop.home, words);
  else if (program === 'aws') await sync(words[2] ?? '', words[3] ?? '');
  else execFileSync('sh', ['-c', line]);
}

/** Does what `aws s3 sync` does: every file becomes an object, without petrel's metadata. */
async function sync(folder: string, url: string): Promise<void> {
  const { client } = await server.connect();
  const prefix = url.replace(`s3://${testBucket}/`, '');
  const names = execFileSync('find', ['.', '-type', 'f'], { cwd: folder, encoding: 'utf8' })
    .trim()
    .split('\n')
    .map((name) => name.slice(2));
  for (const name of names)
    await client.send(
      new PutObjectCommand({ Bucket: testBucket, Key: `${prefix}/${name}`, Body: readFileSync(join(folder, name)) }),
    );
  client.destroy();
}

/** A run that is paused, so that it cannot end before the first command has started. */
async function begun(): Promise<StartedRun> {
  const run = await loop.start(recipe);
  await loop.passes(run, 2);
  await loop.tell(run, 'pause');
  await loop.reaches(run, 'paused');
  loop.runs.delete(run); // its ledger is verified in the new store
  return run;
}

/** The run in its new store has the whole history, and none of its objects names a store. */
async function expectMoved({ runId }: StartedRun, url: string): Promise<void> {
  const store = await openStore(url);
  const moved = { runId, log: new RunLog(store, runId) };
  expect((await moved.log.status.newest())?.state).toBe('completed');
  expect(await loop.states(moved)).toEqual(undisturbed);
  expect((await verifyLedger(store, runId, { deep: true })).faults).toEqual([]);
  const records = (await store.list(`runs/${runId}/`)).filter((key) => key.endsWith('.json'));
  expect(records.length).toBeGreaterThan(20);
  for (const key of records)
    expect(Buffer.from((await store.get(key)) ?? []).toString(), key).not.toMatch(/file:\/\/|s3:\/\//);
  expect((await runWords(loop.home, ['status', runId, '--json'])).json()).toMatchObject({ runId, state: 'completed' });
}

describe('a run that is stopped, copied and resumed (seed 42)', () => {
  it('continues in another folder to the same weights', async () => {
    const run = await begun();
    const newStore = join(loop.home, 'new-store');
    const lines = documented('cp -r', { 'run id': run.runId, 'old store': oldStore, 'new store': newStore });
    expect(lines).toHaveLength(6);
    for (const line of lines) await act(line);
    await expectMoved(run, newStore);
  });

  it('continues in a bucket to the same weights', async () => {
    const run = await begun();
    const lines = documented('aws s3 sync', {
      'run id': run.runId,
      'old store': oldStore,
      bucket: testBucket,
      prefix: 'moved',
    });
    expect(lines).toHaveLength(6);
    for (const line of lines) await act(line);
    await expectMoved(run, server.url('moved'));
  });
});
