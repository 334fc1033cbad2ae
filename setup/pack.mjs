#!/usr/bin/env node
/**
 * `npm run pack`: the package as one file, build/petrel-<version>.tgz, with every dependency in it at its pinned
 * version and the built engine. It needs Node and nothing else from npm. `--stage FOLDER` makes the unpacked package in
 * FOLDER, of hard links, and stops.
 */

import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { checkoutRoot as root, sha256 } from './places.mjs';

const [option, folder] = process.argv.slice(2);
if (option !== undefined && (option !== '--stage' || folder === undefined))
  throw new Error('usage: node setup/pack.mjs [--stage FOLDER]');
const stage = folder ?? join(root, 'build/package');
if (folder === undefined) rmSync(stage, { recursive: true, force: true });

const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
mkdirSync(stage, { recursive: true });
// Only here: with bundled dependencies in a checkout's package.json `npm install` does not end.
const bundled = { ...manifest, bundleDependencies: true, devDependencies: {}, overrides: {} };
writeFileSync(join(stage, 'package.json'), `${JSON.stringify(bundled, null, 2)}\n`);
for (const path of ['README.md', 'LICENSE', ...manifest.files]) {
  if (!path.startsWith('!')) linkTree(path.split('/**')[0].replace(/\/\*\.\w+$/, ''));
}
for (const [path, { dev, optional }] of Object.entries(lockedPackages())) {
  if (path === '' || dev === true) continue;
  if (existsSync(join(root, path))) linkTree(path);
  else if (optional !== true) throw new Error(`${path} is not installed: npm run setup`);
}
removeForeignBinaries(join(stage, 'node_modules/@temporalio/core-bridge/releases'), 'x86_64-unknown-linux-gnu');
removeForeignBinaries(join(stage, 'node_modules/onnxruntime-node/bin/napi-v6'), 'linux');
removeForeignBinaries(join(stage, 'node_modules/onnxruntime-node/bin/napi-v6/linux'), 'x64');
removeInstallScripts();

if (folder === undefined) packStage();

function packStage() {
  execFileSync('npm', ['pack', stage, '--pack-destination', join(root, 'build'), '--loglevel', 'error'], { cwd: root });
  const tarball = join(root, `build/petrel-${manifest.version}.tgz`);
  rmSync(stage, { recursive: true });
  console.log(`build/petrel-${manifest.version}.tgz  ${(statSync(tarball).size / 2 ** 20).toFixed(1)} MiB`);
  console.log(`sha256 ${sha256(tarball)}`);
}

function lockedPackages() {
  return JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages;
}

/** The same files at the same place below the stage, as hard links where the file system has them. */
function linkTree(path) {
  const [from, to] = [join(root, path), join(stage, path)];
  if (!existsSync(from)) throw new Error(`${path} is missing: npm run setup`);
  if (!statSync(from).isDirectory()) {
    mkdirSync(dirname(to), { recursive: true });
    if (existsSync(to)) return;
    try {
      linkSync(from, to);
    } catch (error) {
      if (error.code !== 'EXDEV' && error.code !== 'EPERM') throw error;
      cpSync(from, to);
    }
    return;
  }
  for (const name of readdirSync(from)) {
    // The packages inside a package have entries of their own in the lock.
    if (!(path.includes('node_modules/') && name === 'node_modules')) linkTree(`${path}/${name}`);
  }
}

/** npm runs them for packages inside a package, too; petrel needs none of what they fetch (docs/decisions/0014). */
function removeInstallScripts() {
  for (const [path, { hasInstallScript }] of Object.entries(lockedPackages())) {
    const file = join(stage, path, 'package.json');
    if (hasInstallScript !== true || !existsSync(file)) continue;
    const { scripts: _, ...installed } = JSON.parse(readFileSync(file, 'utf8'));
    rmSync(file); // the checkout has the same file under another name
    writeFileSync(file, `${JSON.stringify(installed, null, 2)}\n`);
  }
}

function removeForeignBinaries(folder, kept) {
  for (const name of readdirSync(folder)) if (name !== kept) rmSync(join(folder, name), { recursive: true });
}
