/** A stack whose address for machines that join is not this machine's: local work goes on over loopback. */
import { execFileSync } from 'node:child_process';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { bounded, processOf, StackUnderTest } from '../../tests/stack-under-test.ts';
import { connectNats } from '../nats/connection.ts';
import { poll } from '../poll.ts';
import { ensureStack, readStack, stopStack } from './index.ts';
import { whyNotHere } from './here.ts';
import { isStackReady } from './read.ts';
import { defaultPools, readEndpoints, writeConfig } from './state.ts';

const address = '10.77.0.9';

let under: StackUnderTest;
beforeEach(() => (under = new StackUnderTest()));
afterEach(() => under.remove());

/** The stack was started with --listen at an earlier time, when the machine had the address. */
const remembered = () =>
  writeConfig(under.home, { pools: defaultPools, listen: { host: address }, programs: under.programs });

it('comes up, says why machines cannot join, and takes --listen off at once', async () => {
  remembered();
  const lines: string[] = [];
  const stack = await ensureStack({ home: under.home, onProgress: (line) => lines.push(line) });
  expect(stack).toMatchObject({ listen: { host: address }, away: expect.stringContaining(address) });
  expect(stack.nats.url).toMatch(/^nats:\/\/127\.0\.0\.1:/);
  expect(lines).toContain(`machines cannot join: this machine does not have the address ${address} now`);
  await (await connectNats(stack, 'test')).close();
  const off = await ensureStack({ home: under.home, listen: 'off' });
  expect([off.listen, off.away]).toEqual([undefined, undefined]);
});

it('refuses a new address that this machine does not have, and changes nothing', async () => {
  await expect(ensureStack({ home: under.home, listen: { host: address } })).rejects.toMatchObject({
    code: 'InvalidInput',
    message: expect.stringContaining(`this machine does not have the address ${address} now; it has`),
  });
  expect(readStack(under.home)).toBeUndefined();
});

it.skipIf(process.getuid?.() !== 0)('follows the address when it comes and when it goes', async () => {
  remembered();
  const before = await ensureStack({ home: under.home });
  const until = (isThere: boolean) =>
    poll(() => {
      const now = readStack(under.home);
      return now && isStackReady(now) && (now.away === undefined) === isThere ? now : undefined;
    }, bounded);
  ip('add');
  try {
    const there = await until(true);
    expect(there?.nats.url).toContain(address);
    expect(there && processOf(there, 'control').pid).not.toBe(processOf(before, 'control').pid);
    const { certificate } = readEndpoints(under.home)?.tls ?? {};
    ip('del');
    const gone = await until(false);
    expect(gone?.nats.url).toContain('127.0.0.1');
    if (gone) await (await connectNats(gone, 'test')).close();
    // Machines that had joined know the certificate.
    expect(readEndpoints(under.home)?.tls?.certificate).toBe(certificate);
    await stopStack(under.home);
  } finally {
    if ((await whyNotHere(address)) === undefined) ip('del');
  }
});

/** Changes the addresses of loopback, which no other machine sees. */
function ip(what: 'add' | 'del'): void {
  execFileSync('ip', ['address', what, `${address}/32`, 'dev', 'lo']);
}
