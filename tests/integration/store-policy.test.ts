/**
 * `petrel fleet policy`, enforced by versitygw: machines with such credentials make the rollouts and scores of a run,
 * and its updates, and the server refuses everything that these are not for.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  PutBucketPolicyCommand,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { controllerPolicy } from '../../infra/fleet/ec2/controller-policy.ts';
import { storePolicy } from '../../infra/fleet/ec2/store-policy.ts';
import { keys } from '../../core/records/keys.ts';
import { resultRecord } from '../../core/records/schema.ts';
import { poll } from '../../infra/poll.ts';
import { freePorts } from '../../infra/ports.ts';
import { ensureStack, stackName } from '../../infra/stack/index.ts';
import { needRecord } from '../../log/objects/records.ts';
import { runWords } from '../cli.ts';
import { startMachine } from '../joined-machine.ts';
import type { JoinedMachine } from '../joined-machine.ts';
import { LoopUnderTest } from '../loop-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';
import { addVersityUser, startVersity, testBucket, versityMissing } from '../s3-servers.ts';
import type { S3Server } from '../s3-servers.ts';
import { patienceMs } from '../patience.ts';

const missing = versityMissing();
const prefix = 'team/runs/';
const worker = { access: 'sampler', secret: 'sampler-secret' };
const trainer = { access: 'trainer', secret: 'trainer-secret' };
const reader = { access: 'reader', secret: 'reader-secret' };

describe.skipIf(missing !== undefined)(
  `a worker with the credential of petrel fleet policy${missing === undefined ? '' : ` (skipped: ${missing})`}`,
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'petrel-policy-'));
    let server: S3Server;
    let loop: LoopUnderTest;
    const machines: JoinedMachine[] = [];
    let run: StartedRun;
    let client: S3Client;
    let ofTrainer: S3Client;
    beforeAll(async () => {
      server = await startVersity(folder);
      loop = new LoopUnderTest(server.use(prefix.replace(/\/$/, '')));
      for (const { access, secret } of [worker, trainer, reader]) addVersityUser(server, access, secret);
      const ofReader = storePolicy({ bucket: testBucket, prefix, principal: reader.access });
      const reads = ofReader.Statement.filter(({ Sid }) => Sid === 'List' || Sid === 'Read');
      const policy = storePolicy({ bucket: testBucket, prefix, principal: worker.access });
      const trains = storePolicy({ bucket: testBucket, prefix, principal: trainer.access, roles: ['trainer'] });
      const all = { ...policy, Statement: [...policy.Statement, ...trains.Statement, ...reads] };
      const { client: owner } = await server.connect();
      await owner.send(new PutBucketPolicyCommand({ Bucket: testBucket, Policy: JSON.stringify(all) }));
      owner.destroy();
      const [port] = (await freePorts(1)) as [number];
      const pools = [{ name: 'score', count: 1, roles: ['reward' as const], threads: 1 }];
      await ensureStack({ home: loop.home, workers: pools, listen: { host: '127.0.0.1', port } });
      await loop.up(pools);
      machines.push(await joins('lab', worker), await joins('gpus', trainer, '--roles', 'trainer'));
      [client, ofTrainer] = [clientOf(worker), clientOf(trainer)];
      run = await loop.start({ trainer: { total_training_steps: 2, save_freq: 1 } });
    });
    afterAll(async () => {
      client?.destroy();
      ofTrainer?.destroy();
      for (const machine of machines) await machine.kill();
      await loop?.remove();
      await server?.stop();
      rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
    });

    async function joins(pool: string, { access, secret }: typeof worker, ...words: string[]): Promise<JoinedMachine> {
      const home = join(folder, pool);
      mkdirSync(home);
      const program = join(home, 'join.mjs');
      const given = ['--pool', pool, '--store', loop.store.url, '--program', program];
      await runWords(loop.home, ['fleet', 'token', ...given, ...words]);
      const env = { ...server.env, AWS_ACCESS_KEY_ID: access, AWS_SECRET_ACCESS_KEY: secret };
      return startMachine({ home, words: [program, '--threads', '1'], env });
    }

    const clientOf = ({ access, secret }: typeof worker) =>
      new S3Client({
        endpoint: server.endpoint,
        region: 'us-east-1',
        forcePathStyle: true,
        maxAttempts: 1,
        credentials: { accessKeyId: access, secretAccessKey: secret },
      });

    const at = (key: string) => ({ Bucket: testBucket, Key: `${prefix}${key}` });
    const refused = { $metadata: expect.objectContaining({ httpStatusCode: 403 }) };

    it('makes all rollouts of a run, and a trainer with its own all updates and checkpoints', async () => {
      await loop.reaches(run, 'completed').catch((cause: unknown) => {
        throw new Error(machines.map(({ said }) => `a machine said:\n${said()}`).join('\n'), { cause });
      });
      const writers = new Set<string>();
      for (const name of await loop.store.children(keys.results(run.runId))) {
        const { record } = await needRecord(loop.store, keys.results(run.runId) + name, resultRecord);
        if (record.stage !== 'reward') writers.add(`${record.stage} ${record.writer.process.replace(/-.*/, '')}`);
      }
      const trained = ['advantage', 'checkpoint', 'open', 'update', 'weights'].map((stage) => `${stage} gpus`);
      expect([...writers].sort()).toEqual([...trained, 'rollout lab'].sort());
      expect(await loop.store.children(keys.checkpoints(run.runId))).toHaveLength(2);
    });

    it('has a machine leave that may only read, with the reason in petrel status and before it takes a job', async () => {
      const machine = await joins('readers', reader);
      try {
        expect(await machine.ended, machine.said()).not.toBe(0);
      } finally {
        await machine.kill();
      }
      const why = 'expected a store in which this machine may create results';
      expect(machine.said()).toContain(why);
      expect(machine.said()).toContain(`petrel fleet policy --store ${loop.store.url}`);
      expect(machine.said()).not.toContain('joined');
      const told = async () => (await runWords(loop.home, ['status', '--json'])).out.includes(why);
      expect(await poll(told, { everyMs: 100, timeoutMs: patienceMs })).toBe(true);
    });

    it.each<readonly [string, () => string]>([
      ['a decision about a batch', () => keys.batch(run.runId, 1, 3)],
      ['an update', () => keys.update(run.runId, 1, 3)],
      ['a term', () => keys.term(run.runId, 2)],
      ['a status', () => keys.status(run.runId, 99)],
      ['a checkpoint', () => keys.checkpoint(run.runId, 2, 'a'.repeat(64))],
      ['a build', () => keys.build('a'.repeat(64))],
      ['a model', () => keys.model('a'.repeat(64), 'config.json')],
      ['the key of claims', () => keys.claimKey],
      ['something outside of the store', () => '../other'],
    ])('may not write %s', async (_, key) => {
      await expect(client.send(new PutObjectCommand({ ...at(key()), Body: 'x' }))).rejects.toMatchObject(refused);
    });

    it.each<readonly [string, () => string]>([
      ['a decision about a batch', () => keys.batch(run.runId, 1, 3)],
      ['an update', () => keys.update(run.runId, 1, 3)],
      ['a term', () => keys.term(run.runId, 2)],
      ['a status', () => keys.status(run.runId, 99)],
      ['a recipe', () => keys.revision(run.runId, 99)],
      ['a build', () => keys.build('a'.repeat(64))],
      ['a model', () => keys.model('a'.repeat(64), 'config.json')],
      ['the key of claims', () => keys.claimKey],
      ['something outside of the store', () => '../other'],
    ])('of a trainer may not write %s', async (_, key) => {
      await expect(ofTrainer.send(new PutObjectCommand({ ...at(key()), Body: 'x' }))).rejects.toMatchObject(refused);
    });

    it('of a trainer reads the states of a run, which say whether it goes on', async () => {
      const newest = (await run.log.status.newest())?.n ?? 0;
      const { Body } = await ofTrainer.send(new GetObjectCommand(at(keys.status(run.runId, newest))));
      expect(await Body?.transformToString()).toContain('completed');
    });

    it('of a trainer may not read the key of claims nor recipes, and deletes nothing', async () => {
      for (const key of [keys.claimKey, keys.revision(run.runId, 1)])
        await expect(ofTrainer.send(new GetObjectCommand(at(key))), key).rejects.toMatchObject(refused);
      const [saved] = await loop.store.children(keys.checkpoints(run.runId));
      for (const key of [keys.checkpoints(run.runId) + saved, keys.update(run.runId, 1, 1), keys.claimKey])
        await expect(ofTrainer.send(new DeleteObjectCommand(at(key))), key).rejects.toMatchObject(refused);
    });

    it('may not read the key of claims, nor the decisions of a run', async () => {
      for (const key of [keys.claimKey, keys.update(run.runId, 1, 1), keys.revision(run.runId, 1)])
        await expect(client.send(new GetObjectCommand(at(key))), key).rejects.toMatchObject(refused);
    });

    it('may delete nothing, not even its own results', async () => {
      const [result] = await loop.store.children(keys.results(run.runId));
      for (const key of [keys.results(run.runId) + result, keys.update(run.runId, 1, 1), keys.claimKey])
        await expect(client.send(new DeleteObjectCommand(at(key))), key).rejects.toMatchObject(refused);
      expect(await loop.store.head(keys.results(run.runId) + result)).toBeDefined();
    });
  },
);

it('the policy is that of the store, for an identity or for a bucket; a folder has none', async () => {
  const home = mkdtempSync(join(tmpdir(), 'petrel-policy-'));
  const policy = async (...words: string[]) => (await runWords(home, ['fleet', 'policy', ...words, '--json'])).json();
  expect(await policy('--store', 's3://team/a/b')).toEqual(storePolicy({ bucket: 'team', prefix: 'a/b/' }));
  const principal = 'arn:aws:iam::123456789012:role/workers';
  expect(await policy('--store', 's3://team', '--principal', principal)).toEqual(
    storePolicy({ bucket: 'team', prefix: '', principal }),
  );
  expect(await policy('--store', 's3://team', '--roles', 'trainer,rollout')).toEqual(
    storePolicy({ bucket: 'team', prefix: '', roles: ['trainer', 'rollout'] }),
  );
  await expect(policy('--store', './here')).rejects.toThrow('expected a store in a bucket');
  rmSync(home, { recursive: true });
});

it('the policy of a control machine names its stack, one role, and its bucket', async () => {
  const home = mkdtempSync(join(tmpdir(), 'petrel-policy-'));
  const words = ['fleet', 'policy', '--store', 's3://team/a', '--json'];
  const role = 'arn:aws:iam::123456789012:role/petrel-worker';
  const answer = async (...more: string[]) => (await runWords(home, [...words, ...more])).json();
  const given = ['--controller', '--role', role, '--region', 'eu-west-1', '--stack', 'lab'];
  const store = { bucket: 'team', prefix: 'a/' };
  expect(await answer(...given)).toEqual(controllerPolicy({ stack: 'lab', region: 'eu-west-1', role, store }));
  expect(await answer('--controller')).toEqual(controllerPolicy({ stack: stackName(home), store }));
  await expect(answer('--controller', '--role', 'worker')).rejects.toThrow('expected the ARN of a role');
  await expect(answer('--role', role)).rejects.toThrow('--role belongs to the policy of --controller');
  await expect(answer('--controller', '--principal', role)).rejects.toThrow(
    '--principal belongs to the policy of workers',
  );
  rmSync(home, { recursive: true });
});
