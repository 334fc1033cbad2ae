/**
 * What `petrel doctor` says of the machine and the shell around petrel: the settings that people have, and what petrel
 * does about each.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { toolOf } from '../../infra/environment.ts';
import { packageRoot } from '../../infra/home.ts';
import { smallLimits } from '../../infra/limits.ts';
import { namesProxy, proxyOf } from '../../infra/outbound/proxy-of.ts';
import { whyNotHere } from '../../infra/stack/here.ts';
import { readConfig } from '../../infra/stack/state.ts';
import { hubSettings, modelScopeSettings } from '../../models/hub.ts';
import type { DoctorCheck, DoctorResult } from './result.ts';
import { green } from './result.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** The checks, in the order in which they are shown. */
export function surroundings(home: string, env: Environment = process.env): readonly DoctorCheck[] {
  return [
    { name: 'limits', check: limits },
    { name: 'C library', check: async () => cLibrary() },
    { name: 'compiler', check: compiler },
    { name: 'proxy', check: async () => proxy(env) },
    { name: 'settings', check: async () => green(settingsText(env)) },
    { name: 'hub', check: async () => green(hubText(env)) },
    { name: 'address', check: async () => await address(home) },
  ];
}

async function limits(): Promise<DoctorResult> {
  const small = await smallLimits();
  if (small.length === 0) return green('address space, open files and processes suffice');
  return {
    status: 'red',
    detail: small.map(({ detail }) => detail).join('; '),
    fix: small.map(({ fix }) => fix).join('; '),
  };
}

/** The oldest one that Node 20 itself runs on. */
const oldestLibrary = 28;

function cLibrary(): DoctorResult {
  Object.assign(process.report, { excludeNetwork: true }); // else it resolves host names
  const report = process.report.getReport() as { readonly header?: { readonly glibcVersionRuntime?: string } };
  const version = report.header?.glibcVersionRuntime;
  if (version === undefined)
    return { status: 'red', detail: 'no glibc (Alpine, musl)', fix: 'use a Debian, Ubuntu, Fedora or Rocky image' };
  const isNewEnough = Number(version.split('.')[1]) >= oldestLibrary || Number(version.split('.')[0]) > 2;
  if (isNewEnough) return green(`glibc ${version}`);
  return {
    status: 'red',
    detail: `glibc ${version}, 2.${oldestLibrary} is needed`,
    fix: 'use a newer system or image',
  };
}

/** Only a checkout, and a package on another system than it was built for, need one. */
async function compiler(): Promise<DoctorResult> {
  const file = join(packageRoot(), 'setup/compiler.mjs');
  const { absentCxx, cxxCompiler } = (await import(pathToFileURL(file).href)) as Record<
    'absentCxx' | 'cxxCompiler',
    () => string | undefined
  >;
  const path = cxxCompiler();
  if (path === undefined)
    return { status: 'yellow', detail: 'none: the engine cannot be built here', fix: 'apt-get install g++ cmake' };
  const said = spawnSync(path, ['--version'], { encoding: 'utf8' }).stdout?.split('\n')[0];
  const absent = absentCxx();
  if (absent !== undefined)
    return {
      status: 'yellow',
      detail: `CXX=${absent} is not there; ${path} is used: ${said}`,
      fix: 'unset CXX, or correct it',
    };
  return green(`${path}: ${said}; CXXFLAGS and the like are not used`);
}

function proxy(env: Environment): DoctorResult {
  const ofGrpc = ['grpc_proxy', 'GRPC_PROXY'].find((name) => env[name]);
  if (!namesProxy(env))
    return green(
      ofGrpc === undefined
        ? 'none is set: connections are made directly'
        : `${ofGrpc} is not used: Temporal on this machine is reached directly, and so is everything else`,
    );
  const through = proxyOf(new URL('https://huggingface.co'), env);
  const exempt = env['no_proxy'] || env['NO_PROXY'];
  const way = through === undefined ? 'directly' : `through ${through.protocol}//${through.host}`;
  return green(
    `https goes out ${way}${exempt ? `, but not to ${exempt}` : ''}; Temporal, NATS and every server on this machine are reached directly`,
  );
}

/** Files of tools, below the user's home, that change what the tools do. */
const files: readonly (readonly [string, string])[] = [
  ['Temporal', '.config/temporalio/temporal.yaml'],
  ['Temporal', '.config/temporalio/temporal.toml'],
  ['NATS', '.config/nats/context.txt'],
  ['pip', '.config/pip/pip.conf'],
  ['pip', '.pip/pip.conf'],
  ['npm', '.npmrc'],
];

function settingsText(env: Environment): string {
  const variables = Object.keys(env).filter((name) => toolOf(name) !== undefined || name.startsWith('PIP_'));
  const present = files.filter(([, path]) => existsSync(join(env['HOME'] || homedir(), path)));
  const found = [...variables.sort(), ...present.map(([, path]) => `~/${path}`)];
  if (found.length === 0) return 'no variables and files of Temporal, NATS, pip, npm or compilers';
  return `${found.join(', ')}: they change nothing in a stack; set-up takes from those of pip and npm only where packages are`;
}

function hubText(env: Environment): string {
  const { hubUrl, token, offline, sharedCache } = hubSettings(env);
  const hub = offline === true ? 'HF_HUB_OFFLINE is set: the hub is not asked' : hubUrl;
  const access = (of: string | undefined): string => (of === undefined ? 'no token' : 'with a token');
  const other = modelScopeSettings(env);
  return `${hub}, ${access(token)}; models in ${sharedCache} are used where they are; modelscope: names are of ${other.hubUrl}, ${access(other.token)}`;
}

async function address(home: string): Promise<DoctorResult> {
  const listen = readConfig(home)?.listen;
  if (listen === undefined) return green('petrel listens on this machine only');
  const away = await whyNotHere(listen.host);
  if (away === undefined) return green(`machines can join at ${listen.host}`);
  return {
    status: 'yellow',
    detail: `machines cannot join: ${away}; work of this machine goes on, and petrel listens there again when it is back`,
    fix: 'petrel up --listen off, or petrel up --listen with an address of this machine',
  };
}
