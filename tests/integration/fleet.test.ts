// @module-tag long
/**
 * A fleet that is bought, on the test cloud (tests/cloud): its machines execute the real user data in empty homes. A
 * run makes its rollouts and scores on them; they are bought when it needs them, and given back afterwards.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { FleetList } from '../../api/fleet/list.ts';
import { billOf } from '../../core/fleet/cost.ts';
import type { NotedPlan } from '../../core/fleet/types.ts';
import { keys } from '../../core/records/keys.ts';
import { resultRecord } from '../../core/records/schema.ts';
import { poll } from '../../infra/poll.ts';
import { historiesOf } from '../../log/fleet/fleet-histories.ts';
import { needRecord } from '../../log/objects/records.ts';
import { stopStack } from '../../infra/stack/index.ts';
import { FleetBed, trainers } from '../fleet/bed.ts';
import type { StartedRun } from '../loop-under-test.ts';
import { patienceMs } from '../patience.ts';

const on = new FleetBed();
const { loop } = on;
const bounded = { everyMs: 100, timeoutMs: patienceMs };

beforeAll(() => on.up());
afterAll(() => on.remove());

const fleet = (...words: string[]) => on.petrel('fleet', ...words);
const list = async (): Promise<FleetList> => (await fleet('ls', '--json')).json();
/** null before the first pass. */
const explained = async (): Promise<NotedPlan | null> => (await fleet('explain', '--json')).json();

async function writersOf({ runId }: StartedRun): Promise<readonly string[]> {
  const writers = new Set<string>();
  for (const name of await loop.store.children(keys.results(runId))) {
    const { record } = await needRecord(loop.store, keys.results(runId) + name, resultRecord);
    if (record.stage === 'rollout' || record.stage === 'reward') writers.add(record.writer.process);
  }
  return [...writers];
}

it('is bought when a run needs it, works, is given back, and every dollar is accounted for', async () => {
  expect((await on.apply()).out).toContain('applied');
  const run = await loop.start({ trainer: { total_training_steps: 3 } });
  await loop.reaches(run, 'completed');
  const writers = await writersOf(run);
  expect(writers.length).toBeGreaterThan(0);
  for (const writer of writers) expect(writer).toMatch(/^samplers-[0-9a-f]{12}\/w1$/);
  await on.empty();
  const instances = (await list()).instances ?? [];
  expect(instances.map(({ state, because }) => [state, because])).toEqual(
    on.served.cloud.bills().map(() => ['ended', expect.stringMatching(/^give back 1 c7i.2xlarge spot/)]),
  );
  const log = on.log();
  const bills = historiesOf(await log.instances()).map(({ endedAt = 0, ...one }) => billOf({ ...one, endedAt }));
  await poll(async () => (await log.usage()).length > 0, bounded);
  const cost = (await on.petrel('cost', '--json')).json<{ usd: number; rows: { name: string }[] }>();
  expect(Math.round(cost.usd * 1e6)).toBe(bills.reduce((sum, one) => sum + one, 0));
  expect(cost.rows.map(({ name }) => name)).toContain(run.runId);
  expect(await loop.said(run, /fleet: buy 1 c7i.2xlarge spot .* needs a worker for its first iteration/)).toHaveLength(
    1,
  );
  for (const { id } of on.served.cloud.bills())
    expect(readFileSync(on.served.cloud.instance(id).consoleFile, 'utf8')).toContain('joined');
});

it('shows workers and dollars while a run is followed, and at its end what it has cost', {
  tags: ['long'],
}, async () => {
  await on.apply({ min: 1, max: 1 });
  await on.ready(1);
  const recipe = loop.recipeFile('followed', { trainer: { total_training_steps: 3 } });
  const { out, err } = await on.petrel('run', recipe, '--wait');
  expect(err).toMatch(/iteration 3\/3 .* 2 workers on 2 machines/);
  expect(out).toMatch(/^cost: \$0\.\d{4}$/m);
  const outcome = (await on.petrel('run', recipe, '--wait', '--json')).json<{ runId: string; usd: number }>();
  const [bought] = (await list()).instances?.filter(({ state }) => state !== 'ended') ?? [];
  expect(bought?.tokensPerSecond).toBeGreaterThan(0);
  const cost = (await on.petrel('cost', outcome.runId, '--json')).json<{ usd: number }>();
  expect(outcome.usd).toBeGreaterThan(0);
  expect(outcome.usd).toBe(cost.usd);
  await on.apply();
  await on.empty();
});

it('replaces an instance that gets a notice, before it is gone, and the run has the bits of an undisturbed one', async () => {
  await on.apply({ min: 1, max: 1 });
  await on.ready(1);
  const undisturbed = await loop.completed({ trainer: { total_training_steps: 4 } });
  const run = await loop.start({ trainer: { total_training_steps: 4 } });
  await loop.passes(run, 1);
  const [first] = on.living();
  on.served.cloud.interrupt(first?.id ?? '', 20_000);
  await loop.reaches(run, 'completed');
  expect(await loop.states(run)).toEqual(await loop.states(undisturbed));
  await on.until('another one is ready', () => on.living().some(({ id }) => id !== first?.id));
  await on.until('the first one has ended', async () => (await on.log().ended(first?.id ?? '')) !== undefined);
  expect((await on.log().ended(first?.id ?? ''))?.ending).toMatch(/^(interrupted|lost)$/);
});

it('buys the trainer of a run that asks for its pool, and another one when that is taken back', {
  tags: ['long'],
}, async () => {
  await on.apply({ roles: ['trainer', 'rollout', 'reward'] });
  const recipe = { trainer: { total_training_steps: 6, save_freq: 2 } };
  const undisturbed = await loop.completed(recipe);
  await on.empty();
  const run = await loop.start({ ...recipe, fleet: { needs: { trainer: { pools: ['samplers'] } } } });
  await loop.said(run, /fleet: buy 1 c7i.2xlarge spot/);
  await loop.passes(run, 2);
  for (const { id } of on.living()) on.served.cloud.interrupt(id, 20_000);
  await loop.reaches(run, 'completed');
  expect(await loop.states(run)).toEqual(await loop.states(undisturbed));
  const trained = new Set<string>();
  for (const name of await loop.store.children(keys.results(run.runId))) {
    const { record } = await needRecord(loop.store, keys.results(run.runId) + name, resultRecord);
    if (record.stage === 'update') trained.add(record.writer.process);
  }
  for (const process of trained) expect(process).toMatch(/^samplers-[0-9a-f]{12}\/w1$/);
  expect(trained.size).toBeGreaterThan(1);
  await on.apply();
  await on.empty();
});

it('launches the successor of an instance that the cloud expects to take back, and then gives that back', {
  tags: ['long'],
}, async () => {
  await on.apply({ min: 1, max: 1 });
  await on.ready(1);
  const [first] = on.living();
  on.served.cloud.recommendRebalance(first?.id ?? '');
  await on.until('it has left', async () => (await on.log().ended(first?.id ?? '')) !== undefined);
  expect((await on.log().ended(first?.id ?? ''))?.because).toBe(
    'the cloud expects to take it back, and its successor is ready',
  );
  expect(on.living()).toHaveLength(1);
  await on.ready(1);
});

it('goes elsewhere when a zone is empty, and says so', async () => {
  const empty = { type: 'c7i.2xlarge', zone: 'us-east-1a', market: 'spot' } as const;
  await on.apply({ min: 0 });
  await fleet('scale', 'samplers', '0');
  await on.empty();
  on.served.cloud.setCapacity(empty, 0);
  await fleet('scale', 'samplers', '1');
  await on.ready(1);
  expect(on.living().map(({ zone }) => zone)).toEqual(['us-east-1b']);
  const launches = await on.log().launches('samplers');
  expect(launches.slice(-2).map(({ answer }) => answer?.refused?.kind)).toEqual(['capacity', undefined]);
  on.served.cloud.setCapacity(empty, undefined);
});

it('drains an instance, and ends one that it has not bought', { tags: ['long'] }, async () => {
  const [own] = on.living();
  const stranger = on.served.cloud.launch({
    ...on.served.cloud.instance(own?.id ?? '').order,
    userData: 'sleep 600',
    token: undefined,
  });
  await on.until('the stranger has ended', () => on.served.cloud.instance(stranger.id).state === 'terminated');
  expect((await fleet('drain', own?.id ?? '')).out).toContain('leaves when its jobs have ended');
  await on.until('it has ended', async () => (await on.log().ended(own?.id ?? ''))?.ending === 'drained');
  await on.ready(1); // as many as petrel fleet scale has set
  await fleet('scale', 'samplers', '0');
  await on.empty();
});

it('gives an instance back that does not join in time', async () => {
  on.served.cloud.faults.failBoots(1);
  await on.apply({ join_within: '3s' });
  await fleet('scale', 'samplers', '1');
  await on.until('it was given up', async () =>
    (await on.log().instances()).some(({ ended }) => ended?.ending === 'never-joined'),
  );
  await on.apply();
  await fleet('scale', 'samplers', '0');
  await on.empty();
});

it('pauses a run at a committed iteration before its budget is spent, and gives its instances back', async () => {
  await on.apply({}, { waiting_usd_per_hour: 1e5 }); // so an iteration is dear
  const run = await loop.start({ fleet: { budget_usd: 0.01 }, trainer: { total_training_steps: 500 } });
  const { reason } = await loop.reaches(run, 'paused');
  expect(reason).toMatchObject({ code: 'BudgetSpent', where: 'fleet.budget_usd' });
  expect(reason?.message).toMatch(/its budget has \$0\.0\d+ left, and 2 iterations at \$\d+\.\d+ are kept back/);
  expect((await run.log.head())?.position).toBeGreaterThan(0);
  await on.empty();
});

it('says why nothing happens while the cloud does not answer, and goes on when it does', {
  tags: ['long'],
}, async () => {
  await on.apply();
  on.served.cloud.faults.order({
    action: 'DescribeInstances',
    code: 'InternalError',
    message: 'no answer today',
    times: 3,
  });
  await fleet('scale', 'samplers', '1');
  await on.until(
    'it says so',
    async () => (await explained())?.notes.some((note) => note.includes('no answer today')) ?? false,
  );
  await on.until('it goes on', async () => (await explained())?.notes.length === 0);
  await on.ready(1);
  await fleet('scale', 'samplers', '0');
  await on.empty();
});

it('refuses a run that no pool can serve, and takes one whose rollouts only the fleet can make', async () => {
  await on.apply({ roles: ['reward'] });
  const words = [
    'run',
    loop.recipeFile('far', { trainer: { total_training_steps: 1 } }),
    'fleet.pools={"train": {"roles": ["trainer"]}}',
  ];
  await expect(on.petrel(...words)).rejects.toThrow(
    /no machine with the role rollout: neither in a pool of the recipe, nor in the stack/,
  );
  await on.apply();
  const { err, out } = await on.petrel(...words, '--wait');
  expect(`${out}${err}`).toContain('completed');
  await on.empty();
});

it('refuses a run whose own scorer has no sandbox and could only run on bought machines', async () => {
  await on.apply({ own_scorers: 'sandboxed' });
  const scorer = join(loop.home, 'scorer.mjs');
  writeFileSync(scorer, 'export const compute_score = () => 1;\n');
  const words = [
    'run',
    loop.recipeFile('open', { trainer: { total_training_steps: 1 } }),
    'fleet.pools={"train": {"roles": ["trainer"]}}',
    'reward.scorer=null',
    `reward.custom_reward_function.path=${scorer}`,
    'deterministic=replay',
  ];
  await expect(on.petrel(...words)).rejects.toThrow(/a scorer of your own needs a sandbox on bought machines/);
});

it('refuses a run whose budget or time cannot be enough, and says what would be', async () => {
  await on.apply();
  const words = (key: string) => on.petrel('run', loop.recipeFile('poor'), key);
  await expect(words('fleet.budget_usd=0.000001')).rejects.toThrow(/expected at least \$0\.0033, what two iterations/);
  await expect(words('fleet.deadline=2020-01-01T00:00:00Z')).rejects.toThrow(/expected a time that is still to come/);
});

it('stops a pool that the cloud refuses, and says why', { tags: ['long'] }, async () => {
  await on.apply();
  on.served.cloud.faults.order({ action: 'RunInstances', code: 'InvalidParameterValue', message: 'no such disk' });
  await fleet('scale', 'samplers', '1');
  await on.until('it has stopped', async () => ((await explained())?.stopped ?? []).length > 0);
  expect((await explained())?.stopped).toEqual([{ pool: 'samplers', because: 'InvalidParameterValue: no such disk' }]);
  await on.apply(); // changed settings are tried again
  await fleet('scale', 'samplers', '1');
  await on.ready(1);
  expect((await fleet('rm', 'samplers')).out).toContain('removed samplers');
  await on.empty();
});

it('lets instances end themselves when the stack is gone, and knows it afterwards', { tags: ['long'] }, async () => {
  await on.apply({ lonely: '4s' });
  await fleet('scale', 'samplers', '1');
  await on.ready(1);
  await stopStack(loop.home);
  await poll(() => on.living().length === 0, bounded);
  expect(on.served.cloud.bills().at(-1)).toMatchObject({ reason: 'Client.InstanceInitiatedShutdown' });
  await on.petrel('fleet', 'scale', 'samplers', '0');
  await loop.up(trainers);
  await on.empty();
});

it.each<[string, (ec2: Readonly<Record<string, unknown>>) => object, RegExp]>([
  ['an unknown type', (ec2) => ({ ...ec2, types: ['c99.huge'] }), /c99\.huge/],
  ['an unknown zone', (ec2) => ({ ...ec2, subnets: { 'mars-1a': 'subnet-0a00000000000001a' } }), /mars-1a/],
  ['an unknown image', (ec2) => ({ ...ec2, image: 'ami-0123456789abcdef0' }), /ami-0123456789abcdef0/],
])('is refused with %s', async (_, change, message) => {
  const refused = on.apply({ ec2: change(on.usualPool().ec2) });
  await expect(refused).rejects.toThrow(message);
  await expect(refused).rejects.toMatchObject({ where: expect.stringMatching(/fleet\.yaml: pools\.samplers\.ec2\./) });
});
