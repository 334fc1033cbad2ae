import dns from 'node:dns';
import { isIP } from 'node:net';
import { afterEach, expect, it, vi } from 'vitest';
import { whyNotHere } from './here.ts';

afterEach(() => vi.restoreAllMocks());

/** A name server that cannot be asked, as while a network comes up. */
function silenceNames(): void {
  const error = Object.assign(new Error('getaddrinfo EAI_AGAIN'), { code: 'EAI_AGAIN' });
  type Callback = (why: Error | null, address?: string, family?: number) => void;
  const lookup = (host: string, ...rest: unknown[]) =>
    queueMicrotask(() => {
      const answer = rest.at(-1) as Callback;
      if (isIP(host) === 0) answer(error);
      else answer(null, host, isIP(host));
    });
  vi.spyOn(dns, 'lookup').mockImplementation(lookup as unknown as typeof dns.lookup);
}

it('takes a name for what it was while no name server answers', async () => {
  expect(await whyNotHere('localhost')).toBeUndefined();
  silenceNames();
  expect(await whyNotHere('localhost')).toBeUndefined();
  expect(await whyNotHere('never-asked.test')).toBe('the name never-asked.test has no address here now');
});

it('names an address that this machine does not have', async () => {
  expect(await whyNotHere('10.77.0.7')).toBe('this machine does not have the address 10.77.0.7 now');
});
