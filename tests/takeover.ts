/**
 * How long a run stands still when its trainer is killed in the middle of an update: `npm run test:takeover -- --size
 * S|M|R [--other-bits]`. No checkpoint is saved, so a trainer without the state must load the base and replay every
 * iteration. A second run has a standby. With --other-bits the run is not deterministic, and the last bits of each
 * trainer process are its own. Prints one JSON line per run; times in seconds. Linux only.
 */
import { statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { sizeNames, sizeOf } from '../bench/sizes.ts';
import type { SizeName } from '../bench/sizes.ts';
import { mergeTrees } from '../core/recipe/index.ts';
import type { Tree } from '../core/recipe/index.ts';
import { keys } from '../core/records/keys.ts';
import { listWorkers } from '../infra/nats/jobs/presence.ts';
import type { WorkerPool } from '../infra/stack/index.ts';
import { readLogChunk } from '../infra/telemetry/run-log-lines.ts';
import { faultsVariable } from '../log/faults/index.ts';
import { Injector } from './inject.ts';
import { LoopUnderTest } from './loop-under-test.ts';
import type { StartedRun } from './loop-under-test.ts';
import { patienceMs } from './patience.ts';

const pools: readonly WorkerPool[] = [
  { name: 'train', count: 2, roles: ['trainer'], threads: 1 },
  { name: 'sample', count: 1, roles: ['rollout', 'reward'], threads: 1 },
];
/** Iterations before the kill. */
const before = 8;
/** The line in the run's log by which the control process says that a worker is lost. */
const noticedLine = /ended \(SIGKILL\) and was started again|is gone: its connection closed/;

const { values } = parseArgs({
  options: { size: { type: 'string', default: 'S' }, 'other-bits': { type: 'boolean', default: false } },
});
const size = values.size as SizeName;
if (!sizeNames.includes(size)) throw new Error(`--size: expected ${sizeNames.join(', ')}, got ${values.size}`);

const { tie_word_embeddings: _, ...shape } = sizeOf(size, false).shape;
const loop = new LoopUnderTest(undefined, { ...shape, max_position_embeddings: 64 });
const faults = join(loop.home, 'faults');
const injector = new Injector(loop.home, faults);
process.env[faultsVariable] = faults;
const otherBits = values['other-bits'];
const recipe: Tree = {
  ...(otherBits && { deterministic: false }),
  trainer: { total_training_steps: before + 4, save_freq: -1 },
};
if (otherBits) process.env['PETREL_PRELOAD'] = join(process.cwd(), 'tests/black-box/perturbed-engine.mjs');

try {
  await loop.up(pools);
  for (const standby of [0, 1]) console.log(JSON.stringify(await measured(standby)));
} finally {
  injector.close();
  await loop.remove();
}

async function measured(standby: number): Promise<Readonly<Record<string, unknown>>> {
  const run = await loop.start(mergeTrees(recipe, { trainer: { standby } }));
  if (standby === 1) await loop.said(run, /its standby .* is ready/);
  await loop.passes(run, before);
  const leader = await leaderOf(run);
  const id = `takeover-${standby}`;
  injector.arm({ id, point: 'write.step', process: leader, action: 'stand' });
  const { identity, facts } = await injector.stands(id, AbortSignal.timeout(patienceMs));
  injector.disarm(id);
  if (identity === undefined) throw new Error(`${leader} is gone`);
  const killedAt = Date.now();
  await injector.kill([{ name: leader, identity }]);
  const iteration = Number(facts['iteration']);
  await loop.passes(run, iteration);
  const { term } = (await run.log.head()) ?? { term: 1 };
  const committedAt = statSync(
    fileURLToPath(new URL(`${loop.store.url}/${keys.update(run.runId, term, iteration)}`)),
  ).mtimeMs;
  const noticedAt = await noticed(run, killedAt);
  await loop.reaches(run, 'completed');
  const seconds = (ms: number) => Number((ms / 1000).toFixed(2));
  return {
    size,
    standby,
    iteration,
    noticed: seconds(noticedAt - killedAt),
    committedAfterNotice: seconds(committedAt - noticedAt),
    replayed: (await loop.lines(run)).filter((line) => /replayed iteration/.test(line)).length,
  };
}

async function leaderOf(run: StartedRun): Promise<string> {
  const leader = (await listWorkers(loop.nc)).find((one) => one.lease === run.runId && one.standsBy !== true);
  if (leader === undefined) throw new Error(`${run.runId} has no trainer`);
  return leader.worker;
}

async function noticed(run: StartedRun, since: number): Promise<number> {
  await loop.said(run, noticedLine);
  for (const chunk of await loop.store.children(keys.logs(run.runId)))
    for (const { at, text } of await readLogChunk(loop.store, run.runId, chunk))
      if (noticedLine.test(text) && Date.parse(at) >= since) return Date.parse(at);
  throw new Error('nobody has noticed that the trainer is lost');
}
