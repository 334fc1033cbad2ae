import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { openStore } from '../store/open.ts';
import { stackIdentity, stackName } from './identity.ts';
import { claimName, nameTaken } from './names.ts';
import type { OwnedByOthers } from './servers.ts';
import { defaultPools, writeConfig } from './state.ts';

const folder = mkdtempSync(join(tmpdir(), 'petrel-names-'));
afterAll(() => rmSync(folder, { recursive: true }));

let homes = 0;
function newHome(name?: string, servers?: OwnedByOthers): string {
  const home = join(folder, `home-${++homes}`);
  mkdirSync(home);
  if (name !== undefined) writeFileSync(join(home, 'stack-name'), `${name}\n`);
  if (servers !== undefined) writeConfig(home, { pools: defaultPools, servers });
  return home;
}
const newStore = () => openStore(join(folder, `store-${++homes}`));

const key = 'ab'.repeat(32);
const temporal = { address: 't.example:7233', namespace: 'lab' };
const shared = (where: string, of: { readonly key?: string; readonly temporal?: typeof temporal } = {}) => ({
  shared: { name: 'team', store: where, key: of.key ?? key },
  temporal: of.temporal ?? temporal,
  nats: { url: 'nats://n.example:4222', replicas: 1 },
});

describe('the name of a stack in a store', () => {
  it('belongs to the stack that claimed it first, and a second one is told who has it and what to type', async () => {
    const store = await newStore();
    const [first, second] = [newHome('lab-1'), newHome('lab-1')];
    await claimName(first, store);
    await claimName(first, store);
    expect(await store.list('stacks/')).toEqual(['stacks/lab-1/claims/1.json']);
    await expect(claimName(second, store)).rejects.toMatchObject({
      code: 'Conflict',
      message: expect.stringMatching(/another stack has the name lab-1: \S+, since \S+, with its own Temporal/),
      hint: expect.stringContaining('petrel up --take-over'),
    });
    await claimName(newHome('lab-2'), store);
  });

  it('goes to the stack that takes it over, and the first one learns that it has lost it', async () => {
    const store = await newStore();
    const [first, second] = [newHome('lab-1'), newHome('lab-1')];
    await claimName(first, store);
    expect(await nameTaken(first, store)).toBeUndefined();
    await claimName(second, store, true);
    await claimName(second, store);
    expect(await nameTaken(second, store)).toBeUndefined();
    expect(await nameTaken(first, store)).toMatchObject({ id: stackIdentity(second).id });
    await expect(claimName(first, store)).rejects.toMatchObject({ code: 'Conflict' });
    await claimName(first, store, true);
    expect(await nameTaken(second, store)).toMatchObject({ id: stackIdentity(first).id });
  });

  it('goes to one of many stacks that claim it at the same time', async () => {
    const store = await newStore();
    const claims = Array.from({ length: 16 }, () => claimName(newHome('lab-1'), store));
    const outcomes = await Promise.allSettled(claims);
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    for (const outcome of outcomes)
      if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ code: 'Conflict' });
  });

  it('is the same for the machines with one key, and another one with another key', async () => {
    const store = await newStore();
    const [first, second] = [newHome('a', shared(store.url)), newHome('b', shared(store.url))];
    expect(stackIdentity(second)).toEqual(stackIdentity(first));
    expect(stackName(first)).toBe('team');
    await claimName(first, store);
    await claimName(second, store);
    expect(await store.list('stacks/')).toHaveLength(1);
    const stranger = newHome('c', shared(store.url, { key: 'cd'.repeat(32) }));
    await expect(claimName(stranger, store)).rejects.toThrow(
      /another stack has the name team: .* with Temporal at t\.example:7233, namespace lab/,
    );
  });

  it('belongs to one Temporal: a machine with the same key and another server or namespace is refused', async () => {
    const store = await newStore();
    await claimName(newHome('a', shared(store.url)), store);
    for (const other of [
      { ...temporal, address: 'u.example:7233' },
      { ...temporal, namespace: 'other' },
    ]) {
      const home = newHome('b', shared(store.url, { temporal: other }));
      await expect(claimName(home, store)).rejects.toMatchObject({
        code: 'Conflict',
        message: expect.stringContaining(`stack.yaml names Temporal at ${other.address}, namespace ${other.namespace}`),
      });
    }
  });

  it('may go over from its own Temporal to that of stack.yaml and back', async () => {
    const [store, home] = [await newStore(), newHome('lab-1')];
    await claimName(home, store);
    writeConfig(home, { pools: defaultPools, servers: { temporal } });
    await claimName(home, store);
    writeConfig(home, { pools: defaultPools });
    await claimName(home, store);
    expect(await store.list('stacks/')).toHaveLength(3);
  });

  it('is not claimed by a stack of several machines in a store that only one of them reaches', async () => {
    const home = newHome('a', shared('s3://team/runs'));
    await expect(claimName(home, await newStore())).rejects.toMatchObject({ hint: 'store: s3://team/runs' });
  });
});
