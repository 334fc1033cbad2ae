/** npm packages, exactly as package-lock.json names them. */

import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkoutStamp } from './places.mjs';
import { runProgram } from './programs.mjs';
import { SetupError } from './report.mjs';

export function npmStep({ root }) {
  const stamp = checkoutStamp(root, 'npm');
  const key = () => {
    const hash = createHash('sha256');
    for (const file of ['package.json', 'package-lock.json']) hash.update(readFileSync(join(root, file)));
    return hash.digest('hex');
  };
  return {
    name: 'npm packages',
    needs: [],
    pending: () => !existsSync(join(root, 'node_modules')) || !(stamp.holds(key()) || alreadyInstalled(root)),
    async run() {
      await install(root);
      stamp.write(key());
      return `${Object.keys(lockedPackages(join(root, 'package-lock.json'))).length} packages`;
    },
  };
}

/** `npm ci` refuses a lock whose optional platform packages were pruned where it was made, hence `npm install` and a check. */
async function install(root) {
  const lockPath = join(root, 'package-lock.json');
  const before = readFileSync(lockPath);
  const wanted = JSON.stringify(lockedPackages(lockPath));
  await runProgram('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund'], {
    cwd: root,
    what: 'npm install',
    hint: 'check the network and `npm config get registry`, then run this again: it continues where it stopped',
  });
  if (before.equals(readFileSync(lockPath))) return;
  const changed = JSON.stringify(lockedPackages(lockPath)) !== wanted;
  writeFileSync(lockPath, before); // an npm of another version may only format it differently
  if (changed) {
    throw new SetupError(
      'package-lock.json does not fit package.json: npm chose other versions',
      'run `npm install` by hand, look at the changes and commit them',
    );
  }
}

/** path → version and integrity: what a lock decides, without its formatting. */
function lockedPackages(path) {
  const { packages } = JSON.parse(readFileSync(path, 'utf8'));
  const entries = Object.entries(packages).filter(([name]) => name !== '');
  return Object.fromEntries(entries.map(([name, { version, integrity }]) => [name, `${version} ${integrity}`]).sort());
}

/** True when somebody's `npm install` already brought what the lock names (npm keeps its own list in node_modules). */
function alreadyInstalled(root) {
  const installedPath = join(root, 'node_modules', '.package-lock.json');
  if (!existsSync(installedPath)) return false;
  const installed = lockedPackages(installedPath);
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  return Object.entries(packages).every(
    ([name, entry]) => name === '' || entry.optional || installed[name] === `${entry.version} ${entry.integrity}`,
  );
}
