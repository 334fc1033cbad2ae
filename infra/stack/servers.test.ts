import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { fmtCreds } from '@nats-io/jwt';
import { createUser } from '@nats-io/nkeys';
import fc from 'fast-check';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { issueUser, newAuthority } from '../nats/access/authority.ts';
import { publicNkey, readCredentials } from '../nats/nkey.ts';
import { readServers, serversVariable } from './servers.ts';
import { requireServing } from './serving.ts';

const servers = 'temporal: { address: "t:7233" }\nnats: { urls: ["nats://a:4222"] }';
const home = mkdtempSync(join(tmpdir(), 'petrel-servers-'));
const path = join(home, 'stack.yaml');
beforeEach(() => rmSync(path, { force: true }));
afterAll(() => rmSync(home, { recursive: true }));

function read(text: string, env: NodeJS.ProcessEnv = {}) {
  writeFileSync(path, text);
  return readServers(home, env);
}

describe('stack.yaml', () => {
  it('may be absent, and may name servers of one kind', () => {
    expect(readServers(home, {})).toBeUndefined();
    expect(read('')).toEqual({});
    expect(read('temporal: { address: "t.example:7233" }')).toEqual({
      temporal: { address: 't.example:7233', namespace: 'default' },
    });
    expect(read('nats: { urls: ["nats://a:4222"] }')).toEqual({ nats: { url: 'nats://a:4222', replicas: 1 } });
  });

  it('takes keys from the environment, and keeps three copies on three servers unless it says otherwise', () => {
    const text = 'temporal: { address: "t:7233", namespace: lab, tls: true, api_key: env:KEY }';
    expect(read(text, { KEY: 'secret' })).toEqual({
      temporal: { address: 't:7233', namespace: 'lab', tls: true, apiKey: 'secret' },
    });
    const urls = 'urls: ["nats://a:4222", "nats://b:4222", "nats://c:4222"]';
    expect(read(`nats: { ${urls} }`)?.nats?.replicas).toBe(3);
    expect(read(`nats: { ${urls}, replicas: 1 }`)?.nats?.replicas).toBe(1);
  });

  it('is the file that the environment names, with paths beside it', async () => {
    const other = join(home, 'other.yaml');
    const key = createUser();
    const jwt = await issueUser((await newAuthority()).control, { name: 'stack', key: key.getPublicKey() });
    writeFileSync(join(home, 'stack.creds'), fmtCreds(jwt, key));
    writeFileSync(join(home, 'ca.pem'), 'certificate');
    writeFileSync(other, 'nats: { urls: ["tls://a:4222"], credentials: stack.creds, ca: ca.pem }');
    const nats = readServers(home, { [serversVariable]: other })?.nats;
    expect(nats).toMatchObject({ ca: 'certificate', credential: { jwt } });
    expect(publicNkey(nats?.credential?.key ?? '')).toBe(key.getPublicKey());
  });

  it.each([
    ['nats: [', /not valid YAML/],
    ['natz: {}', /natz/],
    ['nats: { urls: [] }', /nats\.urls/],
    ['nats: { urls: ["http://a:1"] }', /expected nats:\/\/host:port/],
    ['nats: { urls: ["nats://a:1"], replicas: 2 }', /nats\.replicas/],
    ['nats: { urls: ["nats://a:1"], credentials: none.creds }', /expected a readable file, got .*none\.creds/],
    ['nats: { urls: ["nats://a:1"], credentials: stack.yaml }', /expected a credentials file of NATS/],
    ['temporal: { address: "no port" }', /expected host:port/],
    ['temporal: { address: "t:1", api_key: secret }', /expected env:NAME/],
    ['temporal: { address: "t:1", api_key: env:NOT_SET }', /environment variable NOT_SET, which is not set/],
  ])('%s is refused', (text, message) => {
    expect(() => read(text)).toThrow(
      expect.objectContaining({
        message: expect.stringMatching(message),
        hint: text.includes('[') && !text.includes(']') ? undefined : expect.any(String),
        where: expect.stringContaining('stack.yaml'),
      }),
    );
  });

  it('makes several machines one stack with a name, a store and a key', () => {
    const key = 'AB'.repeat(32);
    writeFileSync(join(home, 'stack.key'), `${key}\n`);
    const shared = (store: string) => read(`${servers}\nname: team\nkey: stack.key\nstore: ${store}`)?.shared;
    expect(shared('s3://team/runs')).toEqual({ name: 'team', store: 's3://team/runs', key: key.toLowerCase() });
    expect(shared('runs')?.store).toBe(pathToFileURL(join(home, 'runs')).href);
  });

  it.each([
    ['name: team', /expected name, store and key together, or none of them; missing: store, key/],
    ['name: team\nkey: stack.key', /missing: store$/],
    ['store: s3://a/b\nkey: stack.key', /missing: name$/],
    ['name: a/b\nstore: s3://a/b\nkey: stack.key', /name: expected a name of letters/],
    ['name: team\nstore: s3://a/b\nkey: none.key', /expected a readable file, got .*none\.key/],
    ['name: team\nstore: s3://a/b\nkey: stack.yaml', /expected 32 random bytes in hexadecimal in .*stack\.yaml/],
  ])('%s is refused, with what to type', (text, message) => {
    const hint = expect.stringMatching(/docs\/do\/stack\.md|openssl rand -hex 32 > \S+\.(key|yaml)/);
    const refused = expect.objectContaining({ message: expect.stringMatching(message), hint });
    expect(() => read(`${servers}\n${text}`)).toThrow(refused);
  });

  it.each(['temporal', 'nats'])('with a name needs the servers of both kinds: without %s it is refused', (without) => {
    writeFileSync(join(home, 'stack.key'), 'ab'.repeat(32));
    const others = servers.split('\n').filter((line) => !line.startsWith(without));
    const text = [...others, 'name: team', 'store: s3://a/b', 'key: stack.key'].join('\n');
    expect(() => read(text)).toThrow(new RegExp(`each of its control machines reaches; missing: ${without}`));
  });

  it('that the environment names must exist', () => {
    const missing = join(home, 'missing.yaml');
    expect(() => readServers(home, { [serversVariable]: missing })).toThrow(/expected a readable file/);
  });
});

describe('a credentials file', () => {
  it('is read for any key, and a seed with one other letter is none', () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 56 }), (place) => {
        const key = createUser();
        const text = new TextDecoder().decode(fmtCreds('some.jwt', key));
        const found = readCredentials(text);
        expect(publicNkey(found?.key ?? '')).toBe(key.getPublicKey());
        const seed = new TextDecoder().decode(key.getSeed());
        const letter = seed[place] === 'A' ? 'B' : 'A';
        const wrong = `${seed.slice(0, place)}${letter}${seed.slice(place + 1)}`;
        expect(readCredentials(text.replace(seed, wrong))).toBeUndefined();
      }),
      { numRuns: 50 },
    );
  });
});

describe('a server that does not serve', () => {
  it('is named before the stack starts', async () => {
    const nobody = '127.0.0.1:1';
    await expect(requireServing({ nats: { url: `nats://${nobody}`, replicas: 1 } }, 100)).rejects.toMatchObject({
      code: 'NatsUnreachable',
      where: 'stack.yaml: nats',
    });
    await expect(requireServing({ temporal: { address: nobody, namespace: 'default' } }, 100)).rejects.toMatchObject({
      code: 'TemporalUnreachable',
      where: 'stack.yaml: temporal',
    });
  });
});
