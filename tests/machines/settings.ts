/** Settings that people have for other work than this: variables and files of tools, all of them hostile to a stack. */
import type { Peculiar } from './machine.ts';

/** Temporal's tools find a cloud by these. */
export const temporal: Peculiar = {
  env: {
    TEMPORAL_ADDRESS: 'team.tmprl.invalid:7233',
    TEMPORAL_NAMESPACE: 'team.a1b2c',
    TEMPORAL_API_KEY: 'key-of-a-cloud',
    TEMPORAL_TLS: 'true',
    TEMPORAL_TLS_CA: '/nonexistent/ca.pem',
    TEMPORAL_TLS_CERT: '/nonexistent/cert.pem',
    TEMPORAL_TLS_CLIENT_CERT_PATH: '/nonexistent/cert.pem',
    TEMPORAL_TLS_CLIENT_KEY_PATH: '/nonexistent/key.pem',
    TEMPORAL_TLS_SERVER_NAME: 'team.tmprl.invalid',
    TEMPORAL_CODEC_ENDPOINT: 'http://127.0.0.1:9',
    TEMPORAL_ENV: 'prod',
    TEMPORAL_PROFILE: 'prod',
    TEMPORAL_CONFIG_FILE: '/nonexistent/temporal.toml',
    TEMPORAL_GRPC_META_AUTHORIZATION: 'x',
    TEMPORAL_DEBUG: '1',
    GRPC_DEFAULT_SSL_ROOTS_FILE_PATH: '/nonexistent/roots.pem',
    GRPC_VERBOSITY: 'NONE',
  },
  files: {
    '.config/temporalio/temporal.yaml': 'env:\n  default:\n    address: team.tmprl.invalid:7233\n    tls: true\n',
    '.config/temporalio/temporal.toml':
      '[profile.default]\naddress = "team.tmprl.invalid:7233"\napi_key = "key"\n[profile.default.tls]\n',
  },
};

export const nats: Peculiar = {
  env: {
    NATS_URL: 'nats://team.invalid:4222',
    NATS_CONTEXT: 'team',
    NATS_CREDS: '/nonexistent/team.creds',
    NATS_TOKEN: 'token',
    NKEYS_PATH: '/nonexistent',
  },
  files: { '.config/nats/context.txt': 'team', '.config/nats/context/team.json': '{"url":"nats://team.invalid:4222"}' },
};

export const python: Peculiar = {
  env: {
    PYTHONHOME: '/nonexistent',
    PYTHONSTARTUP: '/nonexistent/startup.py',
    PYTHONINSPECT: '1',
    PYTHONWARNINGS: 'error',
    PYTHONSAFEPATH: '1',
    PYTHONIOENCODING: 'latin-1',
    PIP_REQUIRE_VIRTUALENV: '1',
    PIP_USER: '1',
    PIP_TARGET: '/nonexistent',
    PIP_NO_BINARY: ':all:',
    PIP_DRY_RUN: '1',
    PIP_QUIET: '3',
    UV_OFFLINE: '1',
    CONDA_DEFAULT_ENV: 'base',
  },
  files: { '.config/pip/pip.conf': '[global]\nrequire-virtualenv = true\nuser = true\n[download]\nplatform = win32' },
};

export const npm: Peculiar = {
  env: {
    NODE_ENV: 'production',
    NODE_PATH: '/nonexistent',
    npm_config_omit: 'dev',
    npm_config_dry_run: 'true',
    npm_config_global: 'true',
    npm_config_prefix: '/nonexistent',
    npm_config_package_lock: 'false',
    npm_config_bin_links: 'false',
    npm_config_workspaces: 'true',
  },
  files: { '.npmrc': 'omit=dev\nignore-scripts=false\nlegacy-bundling=true\nbefore=2015-01-01\nbin-links=false' },
};

/** These belong to Node itself, to compilers and to the languages of the servers. */
export const programs: Peculiar = {
  env: {
    NODE_OPTIONS: '--max-old-space-size=400 --no-deprecation',
    CC: '/nonexistent/cc',
    LDFLAGS: '-nonsense',
    CPATH: '/nonexistent',
    CMAKE_GENERATOR: 'Nonsense',
    GODEBUG: 'http2client=0',
    GOMAXPROCS: '1',
    RUST_LOG: 'trace',
    TOKIO_WORKER_THREADS: '1',
  },
};

/** A proxy that nothing may ask, with no exceptions. */
export const proxied = (url: string): Peculiar => {
  const names = ['http_proxy', 'https_proxy', 'all_proxy', 'grpc_proxy'].flatMap((name) => [name, name.toUpperCase()]);
  return { env: { ...Object.fromEntries(names.map((name) => [name, url])), no_proxy: '', NO_PROXY: '' } };
};

/** All of them at once. */
export const together = (...all: readonly Peculiar[]): Peculiar => ({
  env: Object.assign({}, ...all.map(({ env }) => env ?? {})) as Record<string, string>,
  files: Object.assign({}, ...all.map(({ files }) => files ?? {})) as Record<string, string>,
});
