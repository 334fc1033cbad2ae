import { describe, expect, it } from 'vitest';
import { isOwn, proxyOf } from './proxy-of.ts';

const through = (url: string, env: Record<string, string>) => proxyOf(new URL(url), env)?.href;
const all = {
  http_proxy: 'http://web:1',
  https_proxy: 'http://tls:2',
  all_proxy: 'http://all:3',
};

describe('the proxy of a request', () => {
  it.each([
    ['http://hub.test/x', all, 'http://web:1/'],
    ['https://hub.test/x', all, 'http://tls:2/'],
    ['https://hub.test/x', { ALL_PROXY: 'http://all:3' }, 'http://all:3/'],
    ['https://hub.test/x', { HTTPS_PROXY: 'http://capital:1', https_proxy: 'http://small:2' }, 'http://small:2/'],
    ['https://hub.test/x', { HTTPS_PROXY: 'http://user:p%40ss@capital:1' }, 'http://user:p%40ss@capital:1/'],
    ['https://hub.test/x', { https_proxy: 'squid:3128' }, 'http://squid:3128/'],
    ['https://hub.test/x', { http_proxy: 'http://web:1' }, undefined],
    ['https://hub.test/x', {}, undefined],
  ])('of %s under %j is %s', (url, env, expected) => {
    expect(through(url, env as Record<string, string>)).toBe(expected);
  });

  it.each([
    'http://127.0.0.1:9000',
    'http://127.9.9.9',
    'https://localhost',
    'http://s3.localhost:9000',
    'http://[::1]:9000',
    'http://[::ffff:127.0.0.1]',
    'http://169.254.169.254/latest',
  ])('is never used for %s, an address of this machine', (url) => {
    expect(through(url, { ...all, no_proxy: '' })).toBeUndefined();
    expect(through(url, { ...all, all_proxy: 'socks5://x:1', http_proxy: 'socks5://x:1' })).toBeUndefined();
  });

  it.each([
    ['*', true],
    ['hub.test', true],
    ['HUB.test.', false],
    ['.test', true],
    ['*.test', true],
    ['test', true],
    ['ub.test', false],
    ['other, hub.test', true],
    ['hub.test:80', false],
    ['hub.test:443', true],
    ['10.0.0.0/8', false],
  ])('is left out for hosts of no_proxy=%s: %s', (no_proxy, direct) => {
    expect(through('https://hub.test', { ...all, no_proxy }) === undefined).toBe(direct);
    expect(through('https://hub.test', { ...all, NO_PROXY: no_proxy }) === undefined).toBe(direct);
  });

  it.each([
    ['http://10.1.2.3:9000', '10.0.0.0/8', true],
    ['http://10.1.2.3:9000', '10.1.2.3', true],
    ['http://10.1.2.3:9000', '10.1.2.3:9000', true],
    ['http://10.1.2.3:9000', '2.3', false],
    ['http://11.1.2.3:9000', '10.0.0.0/8,192.168.0.0/16', false],
    ['http://[fd00::5]:9000', 'fd00::/8', true],
    ['http://[fd00::5]:9000', '[fd00::5]:9000', true],
    ['http://[fd00::5]:9000', 'fd00::5', true],
    ['http://10.1.2.3', '10.0.0.0/99', false],
  ])('of %s with no_proxy=%s is left out: %s', (url, no_proxy, direct) => {
    expect(through(url, { ...all, no_proxy }) === undefined).toBe(direct);
  });

  it('of another kind is refused without its password, with what to type', () => {
    expect(() => through('https://hub.test', { all_proxy: 'socks5://me:secret@x:1' })).toThrow(
      expect.objectContaining({
        message: 'all_proxy names no HTTP proxy for hub.test: expected http://HOST:PORT, got socks5://…@x:1',
        hint: expect.stringContaining('export https_proxy=http://HOST:PORT, or export no_proxy=hub.test') as string,
      }),
    );
  });
});

it('knows the addresses of this machine', () => {
  expect(['127.0.0.1', '::1', 'localhost', '0.0.0.0', '169.254.0.1'].map(isOwn)).toEqual(Array(5).fill(true));
  expect(['10.0.0.1', 'fd00::1', 'localhost.example', 'hub.test'].map(isOwn)).toEqual(Array(4).fill(false));
});
