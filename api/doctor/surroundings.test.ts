/** What `petrel doctor` says of the settings that people have. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { defaultPools, writeConfig } from '../../infra/stack/state.ts';
import { surroundings } from './surroundings.ts';

let home: string;
beforeEach(() => (home = mkdtempSync(join(tmpdir(), 'petrel-doctor-'))));
afterEach(() => rmSync(home, { recursive: true }));

async function line(name: string, env: Record<string, string> = {}) {
  const found = surroundings(home, { HOME: home, ...env }).find((one) => one.name === name);
  if (found === undefined) throw new Error(`there is no check ${name}`);
  return await found.check();
}

it('shows the proxy, without its password, and what is reached directly', async () => {
  expect(await line('proxy')).toMatchObject({ status: 'green', detail: expect.stringContaining('none is set') });
  const { detail } = await line('proxy', { HTTPS_PROXY: 'http://me:secret@proxy.test:3128', no_proxy: 'lab.test' });
  expect(detail).toContain('through http://proxy.test:3128, but not to lab.test');
  expect(detail).not.toContain('secret');
  await expect(line('proxy', { ALL_PROXY: 'socks5://x:1' })).rejects.toThrow('names no HTTP proxy');
});

it('names the variables and files of other tools, and what petrel does about them', async () => {
  mkdirSync(join(home, '.config/temporalio'), { recursive: true });
  writeFileSync(join(home, '.config/temporalio/temporal.toml'), '');
  const { detail } = await line('settings', { TEMPORAL_TLS: 'true', PIP_USER: '1', NODE_ENV: 'production' });
  expect(detail).toContain('NODE_ENV, PIP_USER, TEMPORAL_TLS, ~/.config/temporalio/temporal.toml: they change nothing');
  expect((await line('settings')).detail).not.toContain('temporal.yaml');
});

it('says that the hub is not asked offline', async () => {
  expect((await line('hub', { HF_HUB_OFFLINE: '1', HF_HUB_CACHE: '/models' })).detail).toMatch(/not asked.*\/models/);
});

it('says that machines cannot join at an address that is gone', async () => {
  expect(await line('address')).toMatchObject({ status: 'green' });
  writeConfig(home, { pools: defaultPools, listen: { host: '10.77.0.8' } });
  expect(await line('address')).toMatchObject({
    status: 'yellow',
    detail: expect.stringContaining('does not have the address 10.77.0.8'),
    fix: expect.stringContaining('petrel up --listen off'),
  });
});

it('knows the C library and the compiler of this machine', async () => {
  expect(await line('C library')).toMatchObject({ status: 'green', detail: expect.stringMatching(/^glibc 2\.\d+/) });
  expect((await line('compiler')).detail).toMatch(/CXXFLAGS|apt-get|none/);
});

it('says that a compiler which CXX names is not there', async () => {
  vi.stubEnv('CXX', 'ccache /opt/gone/g++ -m64');
  expect(await line('compiler')).toMatchObject({
    status: 'yellow',
    detail: expect.stringContaining('CXX=ccache /opt/gone/g++ -m64 is not there'),
  });
  vi.unstubAllEnvs();
});

it('names a proxy of gRPC alone', async () => {
  const { detail } = await line('proxy', { grpc_proxy: 'http://proxy.test:3128' });
  expect(detail).toContain('grpc_proxy is not used');
});
