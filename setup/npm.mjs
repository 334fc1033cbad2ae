/** npm packages, exactly as package-lock.json names them. */

import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkoutStamp } from './places.mjs';
import { withNpmSettings } from './npm-settings.mjs';
import { runProgram } from './programs.mjs';
import { SetupError } from './report.mjs';

export function npmStep({ root, home }) {
  const stamp = checkoutStamp(root, 'npm');
  const key = () => {
    const hash = createHash('sha256');
    for (const file of ['package.json', 'package-lock.json']) hash.update(readFileSync(join(root, file)));
    return hash.digest('hex');
  };
  return {
    name: 'npm packages',
    needs: [],
    // Somebody may have removed the packages of development since: `npm install --omit=dev`, `npm prune`.
    pending: () => !existsSync(join(root, 'node_modules/.bin/tsc')) || !(stamp.holds(key()) || alreadyInstalled(root)),
    async run() {
      await install(root, home);
      stamp.write(key());
      return `${lockedPackages(join(root, 'package-lock.json')).size} packages`;
    },
  };
}

/**
 * `npm ci` refuses a lock whose optional platform packages were pruned where it was made, hence `npm install` and a
 * check. npm adds and prunes entries of optional packages for other platforms, depending on its version and on
 * node_modules.
 */
async function install(root, home) {
  const lockPath = join(root, 'package-lock.json');
  const before = readFileSync(lockPath);
  const wanted = lockedPackages(lockPath);
  const words = ['install', '--include=dev', '--ignore-scripts', '--no-audit', '--no-fund'];
  await withNpmSettings(home, (env) => runProgram('npm', words, { cwd: root, env, what: 'npm install', hintOf }));
  if (before.equals(readFileSync(lockPath))) return;
  const chosen = lockedPackages(lockPath);
  writeFileSync(lockPath, before); // an npm of another version may only format it differently
  const changed = differences(wanted, chosen);
  if (changed.length > 0) {
    throw new SetupError(
      `package-lock.json does not fit package.json: npm chose other versions of ${changed.join(', ')}`,
      'run `npm install` by hand, look at the changes and commit them',
    );
  }
}

/** What npm says it failed of; its own last lines name only its log. */
function hintOf(output) {
  const said = output
    .split('\n')
    .filter(
      (line) => /^npm (error|ERR!) /.test(line) && !/complete log|^npm (error|ERR!) (code|errno|syscall)\b/.test(line),
    )
    .map((line) => line.replace(/^npm (error|ERR!) /, ''));
  const next = 'check the network and `npm config get registry`, then run this again: it continues where it stopped';
  return said.length === 0 ? next : `npm says: ${said[0]}\n→ ${next}`;
}

/** path → version, integrity and whether it is optional: what a lock decides, without its formatting. */
function lockedPackages(path) {
  const { packages } = JSON.parse(readFileSync(path, 'utf8'));
  return new Map(Object.entries(packages).filter(([name]) => name !== ''));
}

/** Paths of packages whose version or bytes differ, or that only one of the locks has, unless they are optional. */
export function differences(wanted, chosen) {
  return [...new Set([...wanted.keys(), ...chosen.keys()])].filter((name) => {
    const [before, after] = [wanted.get(name), chosen.get(name)];
    if (before === undefined || after === undefined) return !(before ?? after).optional;
    return !isSame(before, after);
  });
}

function isSame(one, other) {
  return one.version === other.version && one.integrity === other.integrity;
}

/** True when somebody's `npm install` already brought what the lock names (npm keeps its own list in node_modules). */
function alreadyInstalled(root) {
  const installedPath = join(root, 'node_modules', '.package-lock.json');
  if (!existsSync(installedPath)) return false;
  const installed = lockedPackages(installedPath);
  return [...lockedPackages(join(root, 'package-lock.json'))].every(([name, entry]) => {
    const present = installed.get(name);
    return present === undefined ? entry.optional : isSame(present, entry);
  });
}
