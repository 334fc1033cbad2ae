/**
 * `npm run bench:scale -- [--workers 10,50,200] [--runs 20] [--seconds 60] [--json]`: how the control plane bears many
 * workers. A real run is recorded; then workers that only wait play it, for as many runs as are asked for, on a real
 * stack.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { openStack } from '../../api/index.ts';
import type { Run, Stack } from '../../api/index.ts';
import type { RunId } from '../../core/ids.ts';
import { packageRoot } from '../../infra/home.ts';
import { connectNats } from '../../infra/nats/connection.ts';
import { readStack, setPools } from '../../infra/stack/index.ts';
import type { WorkerPool } from '../../infra/stack/state.ts';
import { openStore } from '../../infra/store/open.ts';
import { defaultStore } from '../../infra/store/places.ts';
import { sharesVariable } from '../../workers/membership.ts';
import { median } from '../clock.ts';
import { privateHome } from '../run/private-home.ts';
import { measureLosses } from './losses.ts';
import type { Losses } from './losses.ts';
import { Players } from './players.ts';
import { processFigures } from './process-figures.ts';
import { record } from './recording.ts';
import { example, overrides } from './settings.ts';
import { Traffic } from './traffic.ts';

interface Row extends Losses {
  readonly workers: number;
  readonly runs: number;
  readonly jobsPerSecond: number;
  /** Time from a free slot and a published job until a worker works on it, ms. */
  readonly freeSlotMs: { readonly median: number; readonly p95: number };
  /** Messages that reach a worker, per second. */
  readonly messagesPerWorker: number;
  /** Presences of the workers, per second and worker. */
  readonly presencesPerWorker: number;
  readonly handedBackPerJob: number;
  /** Requests of all clients, per second. */
  readonly jetstreamRequests: number;
  /** Memory of the control process. */
  readonly controlMb: number;
  /** Share of one core. */
  readonly controlCpu: number;
}

const recordingPatienceMs = 10 * 60 * 1000;
const warmUpMs = 15_000;
const startedAtOnce = 4;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      workers: { type: 'string', default: '10,50,200' },
      runs: { type: 'string', default: '20' },
      seconds: { type: 'string', default: '60' },
      json: { type: 'boolean', default: false },
    },
  });
  const [runs, seconds] = [Number(values.runs), Number(values.seconds)];
  const { home, remove } = privateHome();
  process.once('SIGINT', () => void remove().finally(() => process.exit(130)));
  const rows: Row[] = [];
  try {
    process.env[sharesVariable] = 'off'; // workers that play have no weights that they could share
    const stack = openStack({ home, env: process.env });
    await stack.up();
    const recordingFile = await makeRecording(home, stack);
    for (const workers of values.workers.split(',').map(Number)) {
      const row = await measure(home, stack, recordingFile, { workers, runs, seconds });
      rows.push(row);
      console.error(values.json ? `${workers} workers measured` : JSON.stringify(row));
    }
  } finally {
    await remove();
  }
  console.log(values.json ? JSON.stringify(rows) : table(rows));
}

/** Computes one run with one real worker, and then ends that worker. */
async function makeRecording(home: string, stack: Stack): Promise<string> {
  const nc = await connectNats(stackOf(home), 'bench');
  const traffic = new Traffic(nc);
  // A worker that only samples needs the weights in the store: so the jobs that publish them are recorded too.
  await setPools(home, [local(1), { name: 'sampler', count: 1, roles: ['rollout'] }]);
  const run = await startRun(stack, 'recorded');
  const state = await run.follow(() => {}, AbortSignal.timeout(recordingPatienceMs));
  if (state !== 'completed') throw new Error(`the recorded run is ${state}: ${(await run.outcome()).reason?.message}`);
  await nc.close();
  const jobs = traffic.jobs.filter(({ runId }) => runId === run.id);
  const recording = await record(await openStore(defaultStore(home)), run.id as RunId, jobs);
  const file = join(home, 'recording.json');
  writeFileSync(file, JSON.stringify(recording));
  await setPools(home, [local(0)]);
  return file;
}

const local = (count: number): WorkerPool => ({ name: 'local', count, roles: ['trainer', 'rollout', 'reward'] });

async function measure(
  home: string,
  stack: Stack,
  recordingFile: string,
  { workers, runs, seconds }: { readonly workers: number; readonly runs: number; readonly seconds: number },
): Promise<Row> {
  const nc = await connectNats(stackOf(home), 'bench');
  const traffic = new Traffic(nc);
  const players = new Players(home, { store: defaultStore(home), recordingFile });
  const started: Run[] = [];
  try {
    await players.add('trainer', runs, ['trainer']);
    await players.add('sampler', workers, ['rollout', 'reward']);
    await inTurns(startedAtOnce, runs, async (i) => void started.push(await startRun(stack, `scale-${workers}-${i}`)));
    await sleep(warmUpMs);
    const control = () => processFigures(controlPid(home));
    const [received, { handedBack, presences, requests }, { cpuSeconds }] = [
      await players.received(),
      { ...traffic },
      control(),
    ];
    const firstStart = players.starts.length;
    const from = performance.now();
    await Promise.race([sleep(1000 * seconds), players.failed]);
    const took = (performance.now() - from) / 1000;
    const starts = players.starts.slice(firstStart);
    const waits = starts
      .filter(({ freeSince }) => freeSince > 0)
      .map(({ job, at, freeSince }) => at - Math.max(freeSince, traffic.publishedAt.get(job) ?? at))
      .sort((a, b) => a - b);
    const after = control();
    const all = workers + runs;
    return {
      workers,
      runs,
      jobsPerSecond: starts.length / took,
      freeSlotMs: { median: median(waits), p95: waits[Math.floor(0.95 * waits.length)] ?? Number.NaN },
      messagesPerWorker: ((await players.received()) - received) / took / all,
      presencesPerWorker: (traffic.presences - presences) / took / all,
      handedBackPerJob: (traffic.handedBack - handedBack) / starts.length,
      jetstreamRequests: (traffic.requests - requests) / took,
      controlMb: after.peakMb,
      controlCpu: (after.cpuSeconds - cpuSeconds) / took,
      ...(await measureLosses(players, traffic)),
    };
  } finally {
    await Promise.all(started.map((run) => run.request('cancel')));
    await players.end();
    await nc.close();
  }
}

function startRun(stack: Stack, name: string): Promise<Run> {
  return stack.start({ recipe: join(packageRoot(), example), overrides: [...overrides, `name=${name}`] });
}

async function inTurns(atOnce: number, count: number, work: (i: number) => Promise<void>): Promise<void> {
  let next = 0;
  const turns = Array.from({ length: atOnce }, async () => {
    while (next < count) await work(next++);
  });
  await Promise.all(turns);
}

function stackOf(home: string) {
  const stack = readStack(home);
  if (stack === undefined) throw new Error('the bench’s stack is down');
  return stack;
}

function controlPid(home: string): number {
  const pid = stackOf(home).children.find(({ kind }) => kind === 'control')?.pid;
  if (pid === undefined) throw new Error('the bench’s stack has no control process');
  return pid;
}

function table(rows: readonly Row[]): string {
  const heads = [
    'workers',
    'jobs/s',
    'free slot → job, ms: median',
    'p95',
    'messages/s to a worker',
    'handed back per job',
    'JetStream requests/s',
    'control MB',
    'control cores',
    'loss noticed, s',
    'its job offered, s',
  ];
  const cells = rows.map((row) => [
    String(row.workers),
    row.jobsPerSecond.toFixed(0),
    row.freeSlotMs.median.toFixed(0),
    row.freeSlotMs.p95.toFixed(0),
    row.messagesPerWorker.toFixed(1),
    row.handedBackPerJob.toFixed(3),
    row.jetstreamRequests.toFixed(0),
    row.controlMb.toFixed(0),
    row.controlCpu.toFixed(2),
    row.noticedSeconds.toFixed(2),
    row.offeredSeconds.toFixed(2),
  ]);
  return [heads, heads.map(() => '---:'), ...cells].map((line) => `| ${line.join(' | ')} |`).join('\n');
}

await main();
