/** What set-up takes of a person's settings of npm, pip and Node. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { processEnvironment } from '../infra/environment.ts';
import { packageRoot } from '../infra/home.ts';

const of = async <T>(name: string): Promise<T> =>
  (await import(pathToFileURL(join(packageRoot(), 'setup', name)).href)) as T;

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'petrel-settings-'))));
afterEach(() => rmSync(folder, { recursive: true }));

describe('npm', () => {
  it('keeps from an .npmrc where packages are, and nothing of what is installed', async () => {
    const { keptLines } = await of<{ keptLines: (path: string) => string }>('npm-settings.mjs');
    const where = [
      'registry=https://npm.lab.test/',
      '@lab:registry = https://npm.lab.test/lab/',
      '//npm.lab.test/:_authToken=secret',
      'https-proxy=http://proxy.test:3128',
      'noproxy=lab.test',
      'cafile=/etc/ca.pem',
      'ca[]="-----BEGIN"',
      'strict-ssl=false',
      'fetch-retries=5',
    ];
    const how = ['omit=dev', 'omit[]=dev', 'production=true', 'dry-run=true', 'global=true', 'prefix=/elsewhere'];
    const more = ['package-lock=false', 'bin-links=false', 'before=2020-01-01', 'install-strategy=linked', '; note'];
    writeFileSync(join(folder, '.npmrc'), [...where, ...how, ...more].join('\n'));
    expect(keptLines(join(folder, '.npmrc')).split('\n')).toEqual(where);
    expect(keptLines(join(folder, 'none'))).toBe('');
  });

  it('keeps of the variables the same', async () => {
    const { keptVariables } = await of<{ keptVariables: (env: object) => object }>('npm-settings.mjs');
    const where = {
      npm_config_registry: 'https://npm.lab.test/',
      NPM_CONFIG_HTTPS_PROXY: 'http://proxy.test:3128',
      npm_config_cache: '/cache',
      'npm_config_//npm.lab.test/:_authToken': 'secret',
    };
    const how = { npm_config_omit: 'dev', NPM_CONFIG_DRY_RUN: 'true', npm_config_prefix: '/x', npm_config_noproxy: '' };
    expect(keptVariables({ ...where, ...how, NODE_ENV: 'production' })).toEqual(where);
  });
});

it('leaves no file with tokens of npm in PETREL_HOME, nor one of a set-up that was killed', async () => {
  type Work = (env: Record<string, string>) => Promise<string>;
  const { withNpmSettings } = await of<{ withNpmSettings: (home: string, work: Work) => Promise<string> }>(
    'npm-settings.mjs',
  );
  writeFileSync(join(folder, '.npmrc-1'), '//npm.lab.test/:_authToken=secret');
  const during = await withNpmSettings(folder, async (env) => {
    const file = env['npm_config_userconfig'] ?? '';
    return `${(statSync(file).mode & 0o777).toString(8)} ${readdirSync(folder).join()}`;
  });
  expect(during).toBe(`600 .npmrc-${process.pid}`);
  expect(readdirSync(folder)).toEqual([]);
});

describe('pip', () => {
  const settings = (config: string, env: Record<string, string>) => {
    mkdirSync(join(folder, '.config/pip'), { recursive: true });
    writeFileSync(join(folder, '.config/pip/pip.conf'), config);
    const program = join(packageRoot(), 'rewards/host/chosen_pip.py');
    const { PATH = '' } = process.env;
    return execFileSync('python3', ['-E', program, 'config', 'list'], {
      env: { PATH, HOME: folder, ...env },
      encoding: 'utf8',
    });
  };

  it('keeps where packages are, and nothing of how and where they are installed', () => {
    const config = `[global]
require-virtualenv = true
user = true
target = /nonexistent
no-binary = :all:
dry-run = true
quiet = 3
index-url = https://pypi.lab.test/simple
trusted-host =
  a.test
  b.test
[config]
proxy = http://proxy.test:3128
`;
    const variables = { PIP_REQUIRE_VIRTUALENV: '1', PIP_FIND_LINKS: '/wheels', PIP_USER: '1', PYTHONHOME: '/nowhere' };
    const listed = settings(config, variables);
    expect(listed).toContain(":env:.index-url='https://pypi.lab.test/simple'");
    expect(listed).toContain(":env:.find-links='/wheels'");
    expect(listed).toContain(":env:.proxy='http://proxy.test:3128'");
    expect(listed).toMatch(/:env:\.trusted-host='.*a\.test\\nb\.test'/);
    expect(listed).not.toMatch(/require-virtualenv|user=|target|no-binary|dry-run|quiet|global\./);
  });

  it('goes on without a file that it cannot read', () => {
    expect(settings('no section = 1', { PIP_FIND_LINKS: '/wheels' })).toContain(":env:.find-links='/wheels'");
  });
});

it('removes the same variables of Node and npm as a stack does', async () => {
  const { withoutToolSettings } = await of<{ withoutToolSettings: (env: object) => object }>('environment.mjs');
  const env = {
    NODE_ENV: 'production',
    NODE_PATH: '/x',
    NODE_USE_ENV_PROXY: '1',
    npm_config_omit: 'dev',
    NPM_CONFIG_OMIT: 'dev',
    PYTHONHOME: '/x',
    NODE_EXTRA_CA_CERTS: '/ca',
    NODE_OPTIONS: '--inspect --use-openssl-ca --dns-result-order ipv4first --require /x.js',
    PATH: '/bin',
    https_proxy: 'http://proxy.test:3128',
  };
  const left = Object.fromEntries(
    Object.entries({ ...env, ...withoutToolSettings(env) }).filter(([, value]) => value !== undefined),
  );
  const { no_proxy: _small, NO_PROXY: _capital, ...chosen } = processEnvironment(env);
  expect(left).toEqual(chosen);
});
