/** The machines of `npm run test:machines`: each has one set-up or one run under what is peculiar about it. */
import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { packageRoot } from '../../infra/home.ts';
import { defaultPools, writeConfig } from '../../infra/stack/state.ts';
import { startRecordingProxy } from '../recording-proxy.ts';
import { compilerRows } from './compilers.ts';
import { Machine } from './machine.ts';
import type { Ended, Peculiar } from './machine.ts';
import { writeSmallProject } from './small-project.ts';
import { nats, npm, programs, proxied, python, temporal, together } from './settings.ts';

export interface Row {
  readonly title: string;
  readonly play: () => Promise<void>;
}

const root = packageRoot();
const lesson = join(root, 'examples/01-arithmetic-grpo');
const oneStep = ['--wait', 'trainer.total_training_steps=1'];

/** The rows are played in this order. */
export const rows = (): readonly Row[] => [
  {
    title: 'variables and files of Temporal, NATS, Python, npm, Node, Go and compilers: a run',
    play: () => on(together(temporal, nats, python, npm, programs), runs),
  },
  { title: "a scorer in Python under Python's own variables: a run", play: () => on(python, scoresInPython) },
  { title: 'a proxy for everything, without no_proxy: a run', play: runsBesideProxy },
  { title: 'an address for machines that join which is gone: a run, status, --listen off', play: () => on({}, isAway) },
  { title: 'ulimit -v 8000000: named by up', play: () => refuses('ulimit -v 8000000', 'ulimit -v unlimited') },
  { title: 'ulimit -n 64: named by up', play: () => refuses('ulimit -n 64', 'ulimit -n 4096') },
  { title: "settings of pip, and a Python without pip first on PATH: set-up's servers", play: fetchesServers },
  { title: "settings of npm and NODE_ENV=production: set-up's packages", play: installsPackages },
  ...compilerRows(),
];

async function on(peculiar: Peculiar, play: (machine: Machine) => Promise<void>, toolchain = true): Promise<void> {
  const machine = new Machine(peculiar);
  if (toolchain) machine.useToolchain();
  try {
    await play(machine);
  } finally {
    await machine.remove();
  }
}

/** Fails with all that the command printed. */
function succeeded(ended: Ended): Ended {
  equal(ended.code, 0, ended.text);
  return ended;
}

async function runs(machine: Machine): Promise<void> {
  succeeded(await machine.petrel('run', lesson, ...oneStep));
  match((await machine.petrel('doctor')).text, /TEMPORAL_TLS.*they change nothing in a stack/s);
}

async function scoresInPython(machine: Machine): Promise<void> {
  const scorer = join(machine.folder, 'scorer.py');
  writeFileSync(
    scorer,
    'def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n    return 1.0\n',
  );
  succeeded(await machine.petrel('run', lesson, ...oneStep, `reward.custom_reward_function.path=${scorer}`));
}

async function runsBesideProxy(): Promise<void> {
  const proxy = await startRecordingProxy();
  try {
    await on(proxied(proxy.url), async (machine) => {
      succeeded(await machine.petrel('run', lesson, ...oneStep));
      deepEqual(proxy.asked, []);
    });
  } finally {
    await proxy.close();
  }
}

const gone = '10.77.0.9';

async function isAway(machine: Machine): Promise<void> {
  writeConfig(machine.petrelHome, { pools: defaultPools, listen: { host: gone } });
  match(succeeded(await machine.petrel('run', lesson, ...oneStep)).text, /machines cannot join/);
  match(succeeded(await machine.petrel('status')).text, new RegExp(`does not have the address ${gone}`));
  match((await machine.petrel('doctor')).text, /machines cannot join/);
  succeeded(await machine.petrel('up', '--listen', 'off'));
}

const refuses = (first: string, fix: string): Promise<void> =>
  on({ first }, async (machine) => {
    const { code, text } = await machine.petrel('up');
    equal(code, 2, text);
    ok(text.includes(fix), text);
  });

/** Set-up begins in a home without servers. The wheels come from pip's usual cache where it has them. */
async function fetchesServers(): Promise<void> {
  const machine = new Machine(together(python, { env: { PIP_CACHE_DIR: join(homedir(), '.cache/pip') } }));
  try {
    const environment = join(machine.folder, 'environment');
    execFileSync('python3', ['-m', 'venv', '--without-pip', environment]);
    const path = `PATH=${join(environment, 'bin')}:${process.env['PATH']}`;
    succeeded(await machine.run('env', path, process.execPath, join(root, 'setup/main.mjs')));
    ok(existsSync(join(machine.petrelHome, 'toolchain/tools.json')));
  } finally {
    await machine.remove();
  }
}

/** The step of npm alone: the others would only repeat what this checkout has. */
async function installsPackages(): Promise<void> {
  await on(together(npm, { env: { npm_config_cache: join(homedir(), '.npm') } }), async (machine) => {
    const copy = join(machine.folder, 'checkout');
    writeSmallProject(root, copy);
    const step = `import { npmStep } from ${JSON.stringify(join(copy, 'setup/npm.mjs'))};
console.log(await npmStep({ root: ${JSON.stringify(copy)}, home: ${JSON.stringify(machine.petrelHome)} }).run());`;
    succeeded(await machine.run(process.execPath, '--input-type=module', '-e', step));
    match(succeeded(await machine.run(join(copy, 'node_modules/.bin/tsc'), '--version')).text, /^Version/);
  });
}
