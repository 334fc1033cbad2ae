/**
 * `npm run engines:lock`: makes engines/<name>/requirements.txt of requirements.in: every package that pip chooses,
 * with the SHA-256 of each wheel for Linux that PyPI has of it. A person runs it when a version is raised.
 */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runPip } from './pip.mjs';
import { checkoutRoot } from './places.mjs';

const names = ['torch'];
const isLinux = (file) => /-(any|manylinux\w*_(x86_64|aarch64)|linux_x86_64)(\.manylinux\w*)*\.whl$/.test(file);
/** The wheel is for one of the Python versions on which the engines run. */
const isOurPython = (file) => /-(py2\.py3|py3|cp3\d+)-none-|-(cp310|cp311|cp312|cp313|cp314)-|-abi3-/.test(file);

/** A report of pip that exists: `npm run engines:lock -- report.json`. */
const given = process.argv[2];

async function chosen(name) {
  if (given !== undefined) return JSON.parse(readFileSync(given, 'utf8')).install.map(({ metadata }) => metadata);
  const folder = mkdtempSync(join(tmpdir(), 'petrel-lock-'));
  const report = join(folder, 'report.json');
  const list = join(checkoutRoot, 'engines', name, 'requirements.in');
  try {
    const flags = ['--quiet', '--dry-run', '--ignore-installed', '--only-binary=:all:', '--report', report];
    await runPip(['install', ...flags, '-r', list], { what: `pip, choosing the packages of ${name}` });
    return JSON.parse(readFileSync(report, 'utf8')).install.map(({ metadata }) => metadata);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** SHA-256 of the wheels of a version, as PyPI's simple API lists them. */
async function hashesOf({ name, version }) {
  const answer = await fetch(`https://pypi.org/simple/${name.toLowerCase().replace(/[-_.]+/g, '-')}/`, {
    headers: { accept: 'application/vnd.pypi.simple.v1+json' },
  });
  if (!answer.ok) throw new Error(`PyPI answered ${answer.status} for ${name}`);
  const { files } = await answer.json();
  // A local version, as in 2.15.0+cu132, is not part of the file's name on PyPI.
  const start = `${name.replace(/[-_.]+/g, '_')}-${version.replace(/\+.*/, '')}-`.toLowerCase();
  return files
    .filter(({ filename }) =>
      filename
        .replace(/^(.*?)-/, (word) => word.replace(/\./g, '_'))
        .toLowerCase()
        .startsWith(start),
    )
    .filter(({ filename }) => isLinux(filename) && isOurPython(filename))
    .map(({ hashes }) => hashes.sha256);
}

for (const name of names) {
  const packages = (await chosen(name)).sort((a, b) => (a.name.toLowerCase() < b.name.toLowerCase() ? -1 : 1));
  const lines = [];
  for (const one of packages) {
    const hashes = (await hashesOf(one)).sort();
    if (hashes.length === 0) throw new Error(`${one.name} ${one.version} has no wheel for Linux`);
    lines.push(
      [`${one.name}==${one.version.replace(/\+.*/, '')}`, ...hashes.map((hash) => `    --hash=sha256:${hash}`)].join(
        ' \\\n',
      ),
    );
  }
  const head = '# Made by npm run engines:lock of requirements.in. petrel engine install checks the hashes.\n';
  writeFileSync(join(checkoutRoot, 'engines', name, 'requirements.txt'), `${head}${lines.join('\n')}\n`);
  console.log(`engines/${name}/requirements.txt: ${packages.length} packages`);
}
