/**
 * A fleet in virtual time: one run, whose rollouts are divided among the workers that are ready, and machines that
 * boot, are lost and are given back. Between two events everything is linear, so the model jumps from event to event.
 *
 * Of a lost worker one second of decoding is lost (its journal is written twice a second). Trainers are not lost here.
 */
import { billOf, charges, sumsBy } from '../../core/fleet/cost.ts';
import type { BilledInstance, Span } from '../../core/fleet/cost.ts';
import { restSeconds, samePlace } from '../../core/fleet/spread.ts';
import type { Demand, Place, Pool, Refusal } from '../../core/fleet/types.ts';
import type { Policy } from './policies.ts';
import { exponential, randomOf } from './random.ts';
import type { Random } from './random.ts';
import type { Trace } from './traces.ts';

export interface Work {
  readonly iterations: number;
  readonly rolloutSeconds: number;
  readonly updateSeconds: number;
  /** Cost of an hour of waiting: of the trainer, and of the user by his own estimate. */
  readonly waitingUsdPerHour: number;
  readonly pool: Pool;
}

export interface Outcome {
  readonly policy: string;
  readonly trace: string;
  readonly hours: number;
  /** Cost of the workers. */
  readonly usd: number;
  /** Cost with what waited for them. */
  readonly totalUsd: number;
  readonly losses: number;
  readonly bought: number;
  /** Part of the paid time in which workers did what was needed. */
  readonly useful: number;
  /** Paid time by use, in machine-seconds, for checks of the model. */
  readonly paidSeconds: number;
  readonly usedSeconds: Readonly<Record<string, number>>;
}

const planEverySeconds = 15;
const lostSeconds = 1;

interface Machine extends BilledInstance {
  readonly place: Place;
  readonly readyAt: number;
  readonly lostAt: number;
}

export function play(work: Work, trace: Trace, policy: Policy, seed: number): Outcome {
  return new Model(work, trace, policy, seed).run();
}

class Model {
  readonly #work: Work;
  readonly #trace: Trace;
  readonly #policy: Policy;
  /** One stream for each kind of event, so that two policies meet the same weather. */
  readonly #ofMachines: Random;
  readonly #dry: readonly { readonly zone: string; readonly from: number; readonly to: number }[];
  readonly #zoneLosses: readonly { readonly zone: string; readonly at: number }[];
  #now = 0;
  #machines: Machine[] = [];
  readonly #ended: Machine[] = [];
  readonly #spans: Span[] = [];
  #refusals: (Omit<Refusal, 'secondsAgo'> & { readonly at: number })[] = [];
  #losses = 0;
  #bought = 0;

  constructor(work: Work, trace: Trace, policy: Policy, seed: number) {
    this.#work = work;
    this.#trace = trace;
    this.#policy = policy;
    this.#ofMachines = randomOf(seed * 7 + 1);
    const weather = randomOf(seed * 7 + 2);
    const zones = [...new Set(work.pool.places.map(({ zone }) => zone))];
    const horizon = 200 * 3600;
    this.#dry = zones.flatMap((zone) =>
      arrivals(weather, trace.dryPerHour, horizon).map((at) => ({ zone, from: at, to: at + trace.drySeconds })),
    );
    this.#zoneLosses = zones
      .flatMap((zone) => arrivals(weather, trace.zoneLossesPerHour, horizon).map((at) => ({ zone, at })))
      .sort((a, b) => a.at - b.at);
  }

  run(): Outcome {
    for (let iteration = 1; iteration <= this.#work.iterations; iteration++) {
      this.#rollouts(iteration);
      this.#pass(this.#now + this.#work.updateSeconds, 'waiting', iteration);
    }
    for (const machine of [...this.#machines]) this.#end(machine, this.#now);
    return this.#outcome();
  }

  /** Advances until the rollouts of an iteration are done. */
  #rollouts(iteration: number): void {
    let left = this.#work.rolloutSeconds;
    while (left > 1e-6) {
      const ready = this.#ready().length;
      const done = ready === 0 ? Number.POSITIVE_INFINITY : this.#now + left / ready;
      const until = Math.min(done, this.#nextEvent());
      if (!Number.isFinite(until)) throw new Error(`${this.#policy.name} has no worker and waits for nothing`);
      const [began, workers] = [this.#now, ready];
      const losses = this.#losses;
      this.#pass(until, 'useful', iteration);
      left -= (until - began) * workers;
      left += (this.#losses - losses) * lostSeconds;
    }
  }

  /** Time goes on; what is due on the way happens. */
  #pass(until: number, use: 'useful' | 'waiting', iteration: number): void {
    while (this.#now < until) {
      const next = Math.min(until, this.#nextEvent());
      for (const machine of this.#machines) {
        const booting = Math.min(next, machine.readyAt);
        if (booting > this.#now) this.#span(machine, this.#now, booting, 'booting', undefined);
        const from = Math.max(this.#now, machine.readyAt);
        if (next > from) this.#span(machine, from, next, use, iteration);
      }
      this.#now = next;
      this.#lose();
      if (this.#isPlanDue()) this.#decide();
    }
  }

  #span({ id }: Machine, from: number, to: number, use: Span['use'], iteration: number | undefined): void {
    this.#spans.push({ instance: id, from, to, use, run: 'run', ...(iteration !== undefined && { iteration }) });
  }

  readonly #ready = (): Machine[] => this.#machines.filter(({ readyAt }) => readyAt <= this.#now);
  #isPlanDue(): boolean {
    return Math.abs(this.#now / planEverySeconds - Math.round(this.#now / planEverySeconds)) < 1e-9;
  }

  #nextEvent(): number {
    const plan = (Math.floor(this.#now / planEverySeconds + 1e-9) + 1) * planEverySeconds;
    const later = (times: readonly number[]) =>
      Math.min(Number.POSITIVE_INFINITY, ...times.filter((at) => at > this.#now));
    const zone = this.#zoneLosses.find(({ at }) => at > this.#now)?.at ?? Number.POSITIVE_INFINITY;
    return Math.min(plan, zone, later(this.#machines.flatMap(({ readyAt, lostAt }) => [readyAt, lostAt])));
  }

  #lose(): void {
    const dry = new Set(this.#zoneLosses.filter(({ at }) => at === this.#now).map(({ zone }) => zone));
    for (const machine of [...this.#machines]) {
      const isHit = machine.place.market === 'spot' && dry.has(machine.place.zone);
      if (machine.lostAt > this.#now && !isHit) continue;
      this.#losses += 1;
      this.#end(machine, this.#now);
    }
  }

  #end(machine: Machine, at: number): void {
    this.#machines = this.#machines.filter((one) => one !== machine);
    this.#ended.push({ ...machine, endedAt: at });
  }

  #decide(): void {
    const { pool, rolloutSeconds, updateSeconds, waitingUsdPerHour } = this.#work;
    this.#refusals = this.#refusals.filter(({ at }) => this.#now - at < restSeconds);
    const demand: Demand = {
      run: 'run',
      pool: pool.name,
      rolloutSeconds,
      otherSeconds: updateSeconds,
      waitingUsdPerHour,
      priority: 1,
    };
    const changes = this.#policy.decide({
      pools: [pool],
      demands: [demand],
      instances: this.#machines.map(({ id, place, readyAt }) => ({
        id,
        pool: pool.name,
        place,
        state: readyAt <= this.#now ? 'ready' : 'booting',
      })),
      refusals: this.#refusals.map(({ place, kind, at }) => ({ place, kind, secondsAgo: this.#now - at })),
    });
    for (const { place, by } of changes) {
      for (let n = 0; n < by; n++) this.#buy(place);
      for (let n = 0; n > by; n--) {
        const machine = this.#machines.find((one) => samePlace(one.place, place));
        if (machine !== undefined) this.#end(machine, this.#now);
      }
    }
  }

  #buy(place: Place): void {
    const isDry = this.#dry.some(({ zone, from, to }) => zone === place.zone && from <= this.#now && this.#now < to);
    if (place.market === 'spot' && isDry) {
      this.#refusals.push({ place, kind: 'capacity', at: this.#now });
      return;
    }
    const lifetime = exponential(this.#ofMachines, this.#trace.lossesPerHour);
    this.#machines.push({
      id: `i${++this.#bought}`,
      pool: this.#work.pool.name,
      zone: place.zone,
      usdPerHour: place.usdPerHour,
      place,
      launchedAt: this.#now,
      endedAt: Number.POSITIVE_INFINITY,
      readyAt: this.#now + this.#work.pool.bootSeconds,
      lostAt: place.market === 'spot' ? this.#now + lifetime : Number.POSITIVE_INFINITY,
    });
  }

  #outcome(): Outcome {
    const usd = this.#ended.reduce((sum, one) => sum + billOf(one), 0) / 1e6;
    const hours = this.#now / 3600;
    const byUse = sumsBy(charges(this.#ended, this.#spans), 'use');
    const used: Record<string, number> = {};
    for (const { use, from, to } of this.#spans) used[use] = (used[use] ?? 0) + to - from;
    return {
      policy: this.#policy.name,
      trace: this.#trace.name,
      hours,
      usd,
      totalUsd: usd + hours * this.#work.waitingUsdPerHour,
      losses: this.#losses,
      bought: this.#bought,
      useful: (byUse.get('useful') ?? 0) / 1e6 / Math.max(usd, Number.EPSILON),
      paidSeconds: this.#ended.reduce((sum, { launchedAt, endedAt }) => sum + endedAt - launchedAt, 0),
      usedSeconds: used,
    };
  }
}

function arrivals(random: Random, perHour: number, horizon: number): number[] {
  const times: number[] = [];
  for (let at = exponential(random, perHour); at < horizon; at += exponential(random, perHour)) times.push(at);
  return times;
}
