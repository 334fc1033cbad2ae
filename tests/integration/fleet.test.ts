/**
 * A fleet that is bought, on the test cloud (tests/cloud): its machines execute the real user data in empty homes. A run makes its
 * rollouts and scores on them; they are bought when it needs them, and given back afterwards.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { FleetList } from '../../api/fleet/list.ts';
import { billOf } from '../../core/fleet/cost.ts';
import { keys } from '../../core/records/keys.ts';
import { resultRecord } from '../../core/records/schema.ts';
import { freePorts } from '../../infra/ports.ts';
import { poll } from '../../infra/poll.ts';
import { ensureStack, stackName } from '../../infra/stack/index.ts';
import { FleetLog } from '../../infra/store/fleet-log.ts';
import { historiesOf } from '../../infra/store/fleet-histories.ts';
import { needRecord } from '../../infra/store/records.ts';
import { runWords } from '../cli.ts';
import { startTestCloud } from '../cloud/server.ts';
import type { ServedCloud } from '../cloud/server.ts';
import { useTestCredentials } from '../cloud/use.ts';
import { LoopUnderTest } from '../loop-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';

const bounded = { everyMs: 100, timeoutMs: 90_000 };
const trainer = [{ name: 'train', count: 1, roles: ['trainer' as const], threads: 1 }];
const loop = new LoopUnderTest();
let served: ServedCloud;

beforeAll(async () => {
  served = await startTestCloud();
  process.env['AWS_ENDPOINT_URL_EC2'] = served.endpoint;
  useTestCredentials();
  const [port] = (await freePorts(1)) as [number];
  await ensureStack({ home: loop.home, workers: trainer, listen: { host: '127.0.0.1', port } });
  await loop.up(trainer);
});
afterAll(async () => {
  await loop.remove();
  await served.close();
});

const fleet = (...words: string[]) => runWords(loop.home, ['fleet', ...words]);
const list = async (): Promise<FleetList> => (await fleet('ls', '--json')).json();
const living = () => served.cloud.bills().filter(({ ended }) => ended === undefined);

function fleetFile(more: object = {}): string {
  const { account } = served.cloud;
  const path = join(loop.home, 'fleet.yaml');
  const { region, image, subnets, securityGroup } = account;
  const ec2 = { region, image, types: ['c7i.2xlarge'], subnets, security_groups: [securityGroup] };
  const pool = { provider: 'ec2', max: 2, idle: '2s', lifetime: '1h', join_within: '2m', ec2, ...more };
  writeFileSync(path, JSON.stringify({ pools: { samplers: pool } })); // JSON is YAML
  return path;
}

async function writersOf({ runId }: StartedRun): Promise<readonly string[]> {
  const writers = new Set<string>();
  for (const name of await loop.store.children(keys.results(runId))) {
    const { record } = await needRecord(loop.store, keys.results(runId) + name, resultRecord);
    if (record.stage === 'rollout' || record.stage === 'reward') writers.add(record.writer.process);
  }
  return [...writers];
}

it('is bought when a run needs it, works, is given back, and every dollar is accounted for', async () => {
  expect((await fleet('apply', fleetFile())).out).toContain('applied');
  const run = await loop.start({ trainer: { total_training_steps: 3 } });
  await loop.reaches(run, 'completed');
  const writers = await writersOf(run);
  expect(writers.length).toBeGreaterThan(0);
  for (const writer of writers) expect(writer).toMatch(/^samplers-[0-9a-f]{12}\/w1$/);
  await poll(async () => (await list()).instances?.every(({ state }) => state === 'ended') ?? false, bounded);
  expect(living()).toEqual([]);
  const instances = (await list()).instances ?? [];
  expect(instances.map(({ state, because }) => [state, because])).toEqual(
    served.cloud.bills().map(() => ['ended', expect.stringMatching(/^(give back 1 c7i.2xlarge spot|no run)/)]),
  );
  const log = new FleetLog(loop.store, stackName(loop.home));
  const bills = historiesOf(await log.instances()).map(({ endedAt = 0, ...one }) => billOf({ ...one, endedAt }));
  await poll(async () => (await log.usage()).length > 0, bounded);
  const cost = (await runWords(loop.home, ['cost', '--json'])).json<{ usd: number; rows: { name: string }[] }>();
  expect(Math.round(cost.usd * 1e6)).toBe(bills.reduce((sum, one) => sum + one, 0));
  expect(cost.rows.map(({ name }) => name)).toContain(run.runId);
  for (const { id } of served.cloud.bills())
    expect(readFileSync(served.cloud.instance(id).consoleFile, 'utf8')).toContain('joined');
});
