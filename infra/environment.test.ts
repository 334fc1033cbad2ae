import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { processEnvironment, serverEnvironment, toolOf } from './environment.ts';

describe("the environment of petrel's own processes", () => {
  it.each([
    ['TEMPORAL_TLS', 'Temporal'],
    ['TEMPORAL_CONFIG_FILE', 'Temporal'],
    ['NATS_URL', 'NATS'],
    ['NKEYS_PATH', 'NATS'],
    ['GRPC_DEFAULT_SSL_ROOTS_FILE_PATH', 'gRPC'],
    ['NODE_ENV', 'Node'],
    ['NODE_USE_ENV_PROXY', 'Node'],
    ['npm_config_omit', 'npm'],
    ['NPM_CONFIG_REGISTRY', 'npm'],
    ['PYTHONHOME', 'Python'],
    ['PYTHONINSPECT', 'Python'],
    ['UV_INDEX_URL', 'uv'],
    ['CONDA_DEFAULT_ENV', 'conda'],
    ['CXXFLAGS', 'a compiler'],
    ['CPLUS_INCLUDE_PATH', 'a compiler'],
    ['CMAKE_GENERATOR', 'a compiler'],
    ['GODEBUG', 'Go'],
    ['RUST_LOG', 'Rust'],
  ])('has no %s, which belongs to %s', (name, tool) => {
    expect(toolOf(name)).toBe(tool);
    expect(processEnvironment({ [name]: '1' })).toEqual({});
  });

  it('has what users set for petrel, their scorers and their cloud', () => {
    const env = {
      PATH: '/bin',
      PETREL_HOME: '/h',
      JUDGE_KEY: 'x',
      AWS_SECRET_ACCESS_KEY: 'x',
      HF_TOKEN: 'x',
      SSL_CERT_FILE: '/ca',
      NODE_EXTRA_CA_CERTS: '/ca',
      LD_LIBRARY_PATH: '/lib',
      PYTHONPATH: '/packages',
      PIP_INDEX_URL: 'http://index',
      VIRTUAL_ENV: '/venv',
      CONDA_PREFIX: '/conda',
      OMP_NUM_THREADS: '2',
      CCC: 'mine',
    };
    expect(processEnvironment(env)).toEqual(env);
  });

  it('has of NODE_OPTIONS what is about certificates, names and stack traces', () => {
    const options = '--inspect=0 --enable-source-maps --require /x.js --use-openssl-ca --max-old-space-size=64';
    expect(processEnvironment({ NODE_OPTIONS: options })).toEqual({
      NODE_OPTIONS: '--enable-source-maps --use-openssl-ca',
    });
    expect(processEnvironment({ NODE_OPTIONS: '--inspect' })).toEqual({});
  });

  it('has the options of Node with their values, as Node itself takes them', () => {
    const options = '--dns-result-order ipv4first --import /x.mjs --tls-min-v1.2 --tls-cipher-list="A B"';
    const env = processEnvironment({ NODE_OPTIONS: options });
    expect(env).toEqual({ NODE_OPTIONS: '--dns-result-order ipv4first --tls-min-v1.2 --tls-cipher-list="A B"' });
    const order = 'process.stdout.write(require("node:dns").getDefaultResultOrder())';
    const plain = {
      NODE_OPTIONS: processEnvironment({ NODE_OPTIONS: '--dns-result-order ipv6first' })['NODE_OPTIONS'],
    };
    expect(execFileSync(process.execPath, ['-e', order], { env: plain, encoding: 'utf8' })).toBe('ipv6first');
  });

  it('leaves loopback out of every proxy', () => {
    const no_proxy = 'lab.test,localhost,127.0.0.1,::1';
    expect(processEnvironment({ HTTPS_PROXY: 'http://p:1', NO_PROXY: 'lab.test, localhost' })).toEqual({
      HTTPS_PROXY: 'http://p:1',
      no_proxy,
      NO_PROXY: no_proxy,
    });
    expect(processEnvironment({ https_proxy: 'http://p:1', no_proxy: '*' })).toMatchObject({ no_proxy: '*' });
    expect(processEnvironment({ no_proxy: 'lab.test' })).toEqual({ no_proxy: 'lab.test' });
  });
});

it('servers get a home of petrel and nothing of the user but where programs and temporary files are', () => {
  const env = { HOME: '/me', USER: 'me', PATH: '/bin', TMPDIR: '/t', TEMPORAL_TLS: '1', https_proxy: 'x', LANG: 'C' };
  expect(serverEnvironment('/h', env)).toEqual({
    PATH: '/bin',
    TMPDIR: '/t',
    USER: 'me',
    HOME: '/h',
    XDG_CONFIG_HOME: '/h',
    TEMPORAL_VERSION_CHECK_DISABLED: '1',
  });
});
