/** A run on three bought machines of the test cloud, undisturbed or under the losses of a trace. */
import { setTimeout as delay } from 'node:timers/promises';
import { keys } from '../../core/records/keys.ts';
import { resultRecord } from '../../core/records/schema.ts';
import type { Tree } from '../../core/recipe/index.ts';
import { charges } from '../../core/fleet/cost.ts';
import { billOfFleet } from '../../core/fleet/bill.ts';
import { loadRecipe } from '../../api/recipes/recipe-file.ts';
import { createRun } from '../../api/runs/start.ts';
import { poll } from '../../infra/poll.ts';
import { needRecord } from '../../log/objects/records.ts';
import { historiesOf } from '../../log/fleet/fleet-histories.ts';
import { paceVariable } from '../../workers/engine/engines/native/paced-sampler.ts';
import { FleetBed } from '../fleet/bed.ts';
import type { Iteration, StartedRun } from '../loop-under-test.ts';
import { Seeded } from '../recovery/seeded.ts';
import { DecodedTokens, listen, machineTime, watchLoad } from './measure.ts';
import type { MachineTime } from './measure.ts';
import type { Loss } from './trace.ts';

export const machines = 3;
/** Three machines and the rest of the stack need less than half of two processors at this speed. */
export const tokensPerSecond = 300;

export interface SpotSettings {
  readonly iterations: number;
  /** Path of a recipe; default: a tiny one, of so many iterations. */
  readonly recipe: string | undefined;
  /** Hours of the trace per hour. */
  readonly speed: number;
  readonly seed: number;
  /** A machine boots for so much longer: recovery that is slow on purpose. */
  readonly extraBootMs: number;
}

/** What happened, for the picture. Seconds since the run's start. */
export interface Moment {
  readonly at: number;
  readonly workers: number;
  readonly iteration: number;
  readonly lost: number;
}

export interface Played {
  readonly seconds: number;
  readonly states: readonly string[];
  readonly time: MachineTime;
  readonly losses: number;
  readonly decodedTokensLost: number;
  readonly ledger: boolean;
  readonly usd: number;
  readonly load: number;
  readonly moments: readonly Moment[];
  readonly rewards: readonly number[];
}

export class SpotBed {
  readonly #on = new FleetBed({ env: { [paceVariable]: String(tokensPerSecond) } });

  async play(settings: SpotSettings, losses: readonly Loss[], say: (line: string) => void): Promise<Played> {
    const on = this.#on;
    await on.up();
    on.served.cloud.settings.bootMs = settings.extraBootMs;
    await on.apply({ min: machines, max: machines, idle: '1m' });
    await on.ready(machines);
    const { loop } = on;
    const began = Date.now() / 1_000;
    const loadOf = watchLoad();
    const run = await start(on, settings);
    const tokens = new DecodedTokens(tokensPerSecond);
    listen(loop.nc, run.runId, tokens);
    const ended = new AbortController();
    const moments: Moment[] = [];
    const watching = watch(on, run, began, moments, ended.signal);
    const storm = lose(on, losses, settings, tokens, ended.signal, say);
    await completed(run);
    const now = Date.now() / 1_000;
    ended.abort();
    const lost = await storm;
    await watching;
    const load = loadOf();
    const iterations = await loop.iterations(run);
    const lastRollout = Date.parse(iterations.at(-2)?.update.writer.at ?? '') / 1_000;
    // What machines did is written down every half minute.
    await on.until('the use of the machines is written down', async () => {
      const usage = await on.log().usage();
      return usage.some(({ run: of, to }) => of === run.runId && to > lastRollout);
    });
    const ends = iterations.map(({ update }) => Date.parse(update.writer.at) / 1_000);
    const time = await machineTime(on.log(), { from: began, to: now }, ends, lost.at);
    const usd = await usdOf(on, began);
    await on.petrel('fleet', 'scale', 'samplers', '0');
    await on.empty();
    const resumed = await resumedTokens(run, iterations);
    const faults = await loop.faults();
    loop.runs.delete(run);
    return {
      seconds: now - began,
      states: iterations.map(({ update }) => update.stateDigest),
      time,
      losses: lost.count,
      decodedTokensLost: tokens.thrownAway(resumed),
      ledger: faults.length === 0,
      usd,
      load,
      moments,
      rewards: iterations.map(({ batch }) => Number(batch.metrics['critic/rewards/mean'] ?? 0)),
    };
  }

  remove(): Promise<void> {
    return this.#on.remove();
  }
}

async function start({ loop }: FleetBed, settings: SpotSettings): Promise<StartedRun> {
  if (settings.recipe === undefined) return loop.start(tiny(settings));
  const { recipe } = loadRecipe(settings.recipe, [], process.cwd());
  const ports = { store: loop.store, home: loop.home, env: process.env, now: new Date(), say: () => {} };
  const { runId, log } = await createRun(recipe, ports);
  const run = { runId, log };
  loop.runs.add(run);
  await loop.drive(run);
  return run;
}

const tiny = ({ iterations }: SpotSettings): Tree => ({
  name: 'spot',
  seed: 1,
  data: { train_batch_size: 12, max_prompt_length: 8, max_response_length: 40 },
  rollout: { n: 16, max_num_seqs: 16 },
  actor: { ppo_mini_batch_size: 12, ppo_max_token_len_per_gpu: 512 },
  trainer: { total_training_steps: iterations, save_freq: 10 },
});

/** Tokens that the worker of a rollout job had from the journal, by job. */
async function resumedTokens(
  { runId, log }: StartedRun,
  iterations: readonly Iteration[],
): Promise<Map<string, number>> {
  const jobs = iterations.flatMap(({ batch }) => batch.results).filter((id) => id.startsWith('rollout-'));
  const read = async (job: string): Promise<[string, number]> => {
    const { record } = await needRecord(log.store, keys.result(runId, job), resultRecord);
    return [job, Number(record.timings['rollout/resumed_tokens'] ?? 0)];
  };
  return new Map(await Promise.all(jobs.map(read)));
}

/** Waits for the run's end, as long as the run makes progress. */
async function completed({ log }: StartedRun): Promise<void> {
  let [position, since] = [-1, Date.now()];
  const isOver = async () => {
    const state = (await log.status.newest())?.state;
    if (state === 'failed' || state === 'paused')
      throw new Error(`the run is ${state}: ${JSON.stringify((await log.status.newest())?.reason)}`);
    const now = (await log.head())?.position ?? -1;
    if (now !== position) [position, since] = [now, Date.now()];
    if (Date.now() - since > 180_000) throw new Error(`the run stands at iteration ${position} for three minutes`);
    return state === 'completed';
  };
  await poll(isOver, { everyMs: 50, timeoutMs: 3_600_000 });
}

/**
 * Plays the losses until the run has ended. Returns how many machines and trainers were lost, and when (seconds since
 * the epoch).
 */
async function lose(
  on: FleetBed,
  losses: readonly Loss[],
  { speed, seed }: SpotSettings,
  tokens: DecodedTokens,
  signal: AbortSignal,
  say: (line: string) => void,
): Promise<{ readonly count: number; readonly at: readonly number[] }> {
  const random = new Seeded(seed);
  const began = performance.now();
  const toMs = (hours: number) => (hours * 3_600_000) / speed;
  const lost: { count: number; readonly at: number[] } = { count: 0, at: [] };
  for (const { atHours, machines: count, noticeHours, trainer } of losses) {
    const due = toMs(Math.max(0, atHours - noticeHours)) - (performance.now() - began);
    await delay(Math.max(0, due), undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return lost;
    const victims = random.shuffled(on.living().filter(({ reason }) => reason === undefined)).slice(0, count);
    lost.count += victims.length + (trainer ? 1 : 0);
    lost.at.push(Date.now() / 1_000);
    const how = noticeHours > 0 ? 'with notice' : 'without a word';
    say(
      `${atHours.toFixed(2)} h: ${trainer ? 'the trainer' : `${victims.length} of ${on.living().length} machines, ${how}`}`,
    );
    if (trainer) process.kill(on.loop.process('train-1').pid, 'SIGKILL');
    const known = new Map((await on.log().instances()).map(({ id, joined }) => [id, joined?.instance]));
    for (const { id } of victims) {
      const isLost = () => tokens.lost(known.get(id) ?? id, performance.now());
      if (noticeHours > 0) {
        on.served.cloud.interrupt(id, toMs(noticeHours));
        setTimeout(isLost, toMs(noticeHours)).unref();
      } else {
        isLost();
        void on.served.cloud.lose(id);
      }
    }
  }
  return lost;
}

/** Twice a second: how many machines there are, and where the run is. */
async function watch(
  on: FleetBed,
  run: StartedRun,
  began: number,
  moments: Moment[],
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const all = await on.log().instances();
    moments.push({
      at: Date.now() / 1_000 - began,
      workers: all.filter(({ joined, ended }) => joined !== undefined && ended === undefined).length,
      iteration: (await run.log.head())?.position ?? 0,
      lost: all.filter(({ ended }) => ended?.ending === 'lost' || ended?.ending === 'interrupted').length,
    });
    await delay(500, undefined, { signal }).catch(() => undefined);
  }
}

async function usdOf(on: FleetBed, began: number): Promise<number> {
  const log = on.log();
  const histories = historiesOf(await log.instances()).filter(
    ({ endedAt }) => endedAt === undefined || endedAt > began,
  );
  const { instances, spans } = billOfFleet(histories, await log.usage(), Date.now() / 1_000);
  return charges(instances, spans).reduce((sum, { microUsd }) => sum + microUsd, 0) / 1e6;
}
