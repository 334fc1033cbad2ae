import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { describe, expect, it } from 'vitest';
import { certificateFor, parseListenAddress } from './listen.ts';

describe('the address of --listen', () => {
  it.each([
    ['10.0.0.5', { host: '10.0.0.5' }],
    ['10.0.0.5:4222', { host: '10.0.0.5', port: 4222 }],
    ['gpu1.lab:4222', { host: 'gpu1.lab', port: 4222 }],
    ['[fd00::5]:4222', { host: 'fd00::5', port: 4222 }],
    ['fd00::5', { host: 'fd00::5' }],
  ])('%s is read', (text, address) => expect(parseListenAddress(text)).toEqual(address));

  it.each([
    ['', 'an address of this machine'],
    ['nats://10.0.0.5', 'an address of this machine'],
    ['[10.0.0.5]:1', 'an address of this machine'],
    ['0.0.0.0', 'one address at which the workers reach this machine'],
    ['[::]:4222', 'one address at which the workers reach this machine'],
    ['10.0.0.5:', 'a port from 1 to 65535'],
    ['10.0.0.5:99999', 'a port from 1 to 65535'],
    ['10.0.0.5:http', 'a port from 1 to 65535'],
  ])('"%s" is refused: expected %s', (text, expected) =>
    expect(() => parseListenAddress(text)).toThrow(`--listen: expected ${expected}, got`),
  );
});

describe('the certificate', () => {
  it('is valid for the host, and signed by what the clients trust', async () => {
    for (const host of ['127.0.0.1', 'gpu1.lab']) {
      const made = await certificateFor(host, undefined);
      const [server, ca] = [new X509Certificate(made.certificate), new X509Certificate(made.ca)];
      expect(server.verify(ca.publicKey)).toBe(true);
      expect([server.ca, ca.ca]).toEqual([false, true]);
      expect(isIP(host) === 0 ? server.checkHost(host) : server.checkIP(host)).toBe(host);
      expect(server.checkHost('other.lab')).toBeUndefined();
    }
  });

  it('is kept for the same host, until it ends soon', async () => {
    const made = await certificateFor('127.0.0.1', undefined);
    expect(await certificateFor('127.0.0.1', made)).toBe(made);
    expect((await certificateFor('127.0.0.2', made)).ca).not.toBe(made.ca);
    expect((await certificateFor('127.0.0.1', made, Date.parse(made.until) - 1)).ca).not.toBe(made.ca);
  });
});
