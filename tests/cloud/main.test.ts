/** The test cloud as a process of its own, with orders over HTTP. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, expect, it } from 'vitest';
import { ec2Provider } from '../../infra/fleet/ec2/provider.ts';
import type { Ec2Provider } from '../../infra/fleet/ec2/provider.ts';
import { packageRoot } from '../../infra/home.ts';
import { poll } from '../../infra/poll.ts';
import { processesWith } from '../../infra/stack/process.ts';
import { launchOf } from '../contracts/provider.ts';
import type { TestCloud } from './cloud.ts';
import { machineOf, useTestCredentials } from './use.ts';
import { patienceMs } from '../patience.ts';

useTestCredentials();
const soon = { everyMs: 20, timeoutMs: patienceMs };
const mark = `main-${process.pid}`;

interface Greeting {
  readonly endpoint: string;
  readonly folder: string;
  readonly account: TestCloud['account'];
}

let ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends) end();
  ends = [];
});

async function start(): Promise<
  Greeting & { readonly child: ReturnType<typeof spawn>; readonly provider: Ec2Provider }
> {
  const main = join(packageRoot(), 'dist/tests/cloud/main.js');
  const options = JSON.stringify({ settings: { noticeMs: 1 }, env: { MARK: mark } });
  const child = spawn(process.execPath, [main, '--port', '0', '--options', options], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  const greeting = JSON.parse(line) as Greeting;
  const provider = ec2Provider({ endpoint: greeting.endpoint });
  ends.push(
    () => child.kill('SIGKILL'),
    () => provider.close(),
    () => rmSync(greeting.folder, { recursive: true, force: true, maxRetries: 3 }),
  );
  return { ...greeting, child, provider };
}

async function order(endpoint: string, name: string, body: object = {}): Promise<unknown> {
  const answer = await fetch(`${endpoint}/_test/${name}`, { method: 'POST', body: JSON.stringify(body) });
  const json: unknown = await answer.json();
  if (!answer.ok) throw new Error(JSON.stringify(json));
  return json;
}

it('takes orders, and says what was bought', async () => {
  const { endpoint, account, provider } = await start();
  const pool = { machine: machineOf({ account }), type: 'c7i.2xlarge' };
  const place = { market: 'spot', zone: 'us-east-1a' } as const;
  await order(endpoint, 'capacity', { type: pool.type, ...place, count: 1 });
  const { instances } = await provider.launch(launchOf(pool, 'process', { count: 2, place }));
  expect(instances).toHaveLength(1);
  const id = instances[0]?.id ?? '';
  await order(endpoint, 'interrupt', { id });
  const [bill] = (await poll(async () => {
    const bills = (await order(endpoint, 'bills')) as { readonly ended?: string }[];
    return bills[0]?.ended !== undefined && bills;
  }, soon)) as [object];
  expect(bill).toMatchObject({ id, type: pool.type, ...place, reason: 'Server.SpotInstanceTermination' });
  await expect(order(endpoint, 'lose', { id: 'i-1' })).rejects.toThrow('has no instance i-1');
  await expect(order(endpoint, 'nonsense')).rejects.toThrow('known: interrupt');
  await expect(order(endpoint, 'capacity', { place: 1 })).rejects.toThrow('invalid');
});

it.each(['SIGTERM', 'SIGKILL'] as const)('takes its machines along when it ends by %s', async (signal) => {
  const { account, provider, child } = await start();
  await provider.launch(launchOf({ machine: machineOf({ account }), type: 'c7i.2xlarge' }, 'ends'));
  expect(await poll(() => processesWith('MARK', mark).length > 0, soon)).toBe(true);
  child.kill(signal);
  await once(child, 'exit');
  expect(await poll(() => processesWith('MARK', mark).length === 0, soon)).toBe(true);
});
