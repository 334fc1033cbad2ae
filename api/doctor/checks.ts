/** What `petrel doctor` looks at. One check is one entry. */
import { readFileSync, statfsSync } from 'node:fs';
import { availableParallelism, totalmem } from 'node:os';
import { errorToJson } from '../../core/errors.ts';
import { refusedHint, refusedText } from '../../core/wire/engine-proof.ts';
import { engineReport } from '../../infra/engine-proof.ts';
import { builtProgram, readTools } from '../../infra/home.ts';
import { logFile, stackHealth } from '../../infra/stack/index.ts';
import { checkFences } from '../../infra/store/fencing.ts';
import { openStore } from '../../infra/store/open.ts';
import { isInUse, knownStores } from '../../infra/store/places.ts';
import { showBytes } from '../../core/quantities.ts';
import { findHole } from '../../log/run/log-holes.ts';
import { readModelManifest } from '../../log/inputs/model-facts.ts';
import { listRunIds, openKnownStores, openRun } from '../stores/find.ts';
import { fullPlaces } from '../../infra/stack/admission.ts';
import { openProgramPlace } from '../../rewards/code/program.ts';
import { showWay } from '../../rewards/sandbox/walls.ts';
import { freeSpaceFloor } from '../../log/objects/free-space.ts';
import { openLiveSource } from '../live-source.ts';
import { awayHint, awayTexts, runsAway } from '../stores/stores-away.ts';
import { installedEngines } from './installed-engines.ts';
import { green } from './result.ts';
import type { DoctorCheck, DoctorResult } from './result.ts';
import { surroundings } from './surroundings.ts';

export interface DoctorLine extends DoctorResult {
  readonly name: string;
}

const LEAST_FREE_BYTES = 2 * 2 ** 30;
const NEWEST_RUNS = 10;

/** The checks in the order in which they are shown: what others rest on comes first. */
export function doctorChecks(home: string): readonly DoctorCheck[] {
  return [
    { name: 'platform', check: async () => platform() },
    { name: 'processor', check: async () => processor() },
    { name: 'memory', check: async () => green(`${showBytes(totalmem())}, ${availableParallelism()} cores`) },
    ...surroundings(home).map(({ name, check }) => ({ name, check: async () => await attempt(check) })),
    { name: 'home', check: async () => freeSpace(home) },
    { name: 'room', check: async () => await room(home) },
    { name: 'build', check: async () => await attempt(() => green(`built: ${builtProgram('petrel')}`)) },
    { name: 'engine', check: async () => await attempt(engine) },
    ...installedEngines(home),
    { name: 'servers', check: async () => await attempt(() => servers(home)) },
    { name: 'store', check: async () => await attempt(async () => await store(home)) },
    { name: 'runs', check: async () => await attempt(async () => await runs(home)) },
    { name: 'sandbox', check: async () => sandbox() },
    { name: 'stack', check: async () => await stack(home) },
    { name: 'workers', check: async () => await workers(home) },
  ];
}

/** Refusals that are raised on purpose carry what to do about them. */
async function attempt(check: () => DoctorResult | Promise<DoctorResult>): Promise<DoctorResult> {
  try {
    return await check();
  } catch (error) {
    const { message, hint } = errorToJson(error);
    return { status: 'red', detail: message, ...(hint === undefined ? {} : { fix: hint }) };
  }
}

function platform(): DoctorResult {
  const detail = `${process.platform} ${process.arch}, Node ${process.versions.node}`;
  const supported = process.platform === 'linux' && process.arch === 'x64';
  return supported ? green(detail) : { status: 'red', detail, fix: 'petrel runs on Linux x86-64' };
}

function processor(): DoctorResult {
  const info = readFileSync('/proc/cpuinfo', 'utf8');
  const flags = new Set((/^flags\s*:(.*)$/m.exec(info)?.[1] ?? '').trim().split(/\s+/));
  const name = /^model name\s*:\s*(.*)$/m.exec(info)?.[1] ?? 'unknown';
  if (!flags.has('avx2')) return { status: 'red', detail: `${name} has no AVX2`, fix: 'the native engine needs AVX2' };
  const best = [
    ['amx_bf16', 'AMX'],
    ['avx512_bf16', 'AVX-512 with bf16'],
    ['avx512f', 'AVX-512, no bf16'],
    ['avx2', 'AVX2'],
  ].find(([flag = '']) => flags.has(flag))?.[1];
  return green(`${name}: ${best}`);
}

function freeSpace(home: string): DoctorResult {
  const { bavail, bsize } = statfsSync(home);
  const free = bavail * bsize;
  const detail = `${home}: ${showBytes(free)} free`;
  return free >= LEAST_FREE_BYTES
    ? green(detail)
    : { status: 'yellow', detail, fix: 'checkpoints need room: delete old runs with petrel rm <run>' };
}

/** Checks the free space; with too little of it, no run begins new work. */
async function room(home: string): Promise<DoctorResult> {
  const [full, ...others] = await fullPlaces(await openKnownStores(home, () => {}), home);
  if (full === undefined) return green(`at least ${showBytes(freeSpaceFloor())} are free wherever petrel writes`);
  return {
    status: 'red',
    detail: [full, ...others].map(({ message }) => message).join('; '),
    ...(full.hint === undefined ? {} : { fix: full.hint }),
  };
}

/** Whether the native engine loads on this machine, and whether its bits are those that its name promises. */
async function engine(): Promise<DoctorResult> {
  const { device, addedFlags, proofs } = await engineReport();
  const detail = proofs.map(({ compute, state, ms }) => `${compute} ${state} in ${ms} ms`).join(', ');
  const refused = proofs.find(({ state }) => state === 'refused');
  if (refused !== undefined) return { status: 'red', detail: `${device}: ${refusedText(refused)}`, fix: refusedHint };
  if (addedFlags !== '')
    return {
      status: 'yellow',
      detail: `${device}: ${detail}; built with flags of your own`,
      fix: 'deterministic runs of other machines cannot continue here; unset PETREL_CXX_FLAGS, then npm run build',
    };
  if (proofs.every(({ state }) => state === 'proved')) return green(`${device}: ${detail}`);
  return {
    status: 'yellow',
    detail: `${device}: ${detail}`,
    fix: 'no bits are recorded for this kind of processor; a deterministic run repeats on processors of this kind only',
  };
}

function servers(home: string): DoctorResult {
  const { temporal, 'nats-server': nats } = readTools(home);
  return green(`Temporal ${temporal.version}, NATS ${nats.version}`);
}

/** Only what is in use is written to: an empty folder may be the place of a disk that is not mounted. */
async function store(home: string): Promise<DoctorResult> {
  const urls = knownStores(home).map(({ url }) => url);
  const used = urls.filter(isInUse);
  for (const url of used) await checkFences(await openStore(url, 'refuse'));
  const fences = used.length === 0 ? [] : [`${used.join(', ')}: atomic create works`];
  const away = await runsAway(home);
  if (away.length > 0)
    return { status: 'red', detail: [...awayTexts(away), ...fences].join('; '), fix: awayHint(home) };
  const gone = urls.slice(1).filter((url) => !isInUse(url));
  if (gone.length > 0)
    return { status: 'yellow', detail: [`gone: ${gone.join(', ')}`, ...fences].join('; '), fix: awayHint(home) };
  return green(fences[0] ?? 'none yet: the first run creates one');
}

/** The ends of the logs of the newest runs, and what they begin with. What lies between is read by `ckpt verify`. */
async function runs(home: string): Promise<DoctorResult> {
  const ids = (await listRunIds(await openKnownStores(home, () => {}))).slice(0, NEWEST_RUNS);
  const problems: string[] = [];
  const failed: string[] = [];
  for (const listed of ids) {
    try {
      const run = await openRun(listed);
      if (run === undefined) continue;
      const status = await run.log.status.newest();
      if (status?.state === 'failed') failed.push(run.runId);
      if (status?.reason?.code === 'DamagedRecord') problems.push(status.reason.message);
      await readModelManifest(run.log.store, (await run.log.revision()).inputs.model);
      const head = await run.log.head();
      const hole = await findHole(run.log, head);
      if (hole !== undefined) problems.push(hole.message);
      else if (head !== undefined && head.position > (await run.log.first())) await run.log.iteration(head.position);
    } catch (error) {
      problems.push(errorToJson(error).message);
    }
  }
  const intact =
    ids.length === 1 ? 'the log of the only run is intact' : `the logs of the newest ${ids.length} are intact`;
  if (problems.length === 0 && failed.length > 0)
    return {
      status: 'yellow',
      detail: `${intact}; ${failed.length} failed: ${failed.join(', ')}`,
      fix: `petrel status ${failed[0]} says why`,
    };
  if (problems.length === 0) return green(intact);
  return {
    status: 'red',
    detail: problems.join('; '),
    fix: 'petrel ckpt verify <run> reads all of a run; docs/do/operations.md says what to do',
  };
}

/** Only runs with scorers that need one want it. */
function sandbox(): DoctorResult {
  try {
    const { walls, python } = openProgramPlace();
    const limits = walls.cgroups === undefined ? 'petrel-guard' : `petrel-guard and cgroups in ${walls.cgroups}`;
    return green(`${walls.bwrap} ${showWay(walls)}; limits by ${limits}; ${python.program}`);
  } catch (error) {
    const { message, hint } = errorToJson(error);
    const detail = `the scorer code and reward.sandbox cannot be used here: ${message}`;
    return { status: 'yellow', detail, ...(hint === undefined ? {} : { fix: hint }) };
  }
}

async function stack(home: string): Promise<DoctorResult> {
  const { state, children, problems } = await stackHealth(home);
  if (state === 'down')
    return { status: 'yellow', detail: 'down', fix: 'petrel up starts it, and so does the next run' };
  if (state === 'up') return green(`up, ${children.length} processes`);
  return { status: 'red', detail: problems.join('; ') };
}

/** What the workers say of themselves: a process that runs may still be unfit to work. */
async function workers(home: string): Promise<DoctorResult> {
  const live = await openLiveSource(home);
  try {
    if (live.stack === undefined) return { status: 'yellow', detail: 'none: the stack is down' };
    const present = await live.workers();
    const sick = present.filter(({ state }) => state === 'unhealthy');
    if (sick.length > 0) {
      const names = sick.map(
        ({ worker, lastError }) =>
          `${worker} is unhealthy${lastError === undefined ? '' : ` (${lastError.code}: ${lastError.message.split('\n')[0]})`}`,
      );
      return {
        status: 'red',
        detail: names.join('; '),
        fix: `see ${logFile(home, sick[0]?.worker ?? '')}; petrel down, then petrel up restarts the workers`,
      };
    }
    if (present.length === 0) return { status: 'red', detail: 'there is no worker', fix: 'petrel up --workers 1' };
    return green(present.map(({ worker, state, roles }) => `${worker} ${state} (${roles.join(', ')})`).join('; '));
  } finally {
    await live.close();
  }
}
