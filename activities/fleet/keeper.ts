/**
 * Keeps the fleet of a stack, pass by pass: what is there, what the runs need, what is to be bought and given back. A
 * pass has no memory that matters besides the store, so it may end at any point, and the next one goes on.
 */
import { errorToJson } from '../../core/errors.ts';
import { leastBilledSeconds } from '../../core/fleet/cost.ts';
import { plan } from '../../core/fleet/plan.ts';
import type { FleetRecord } from '../../core/fleet/records.ts';
import { boughtPools, spotKey } from '../../core/fleet/spec.ts';
import type { FleetSpec, SpotPrices } from '../../core/fleet/spec.ts';
import { samePlace } from '../../core/fleet/spread.ts';
import type { Decision } from '../../core/fleet/types.ts';
import type { CloudInstance } from '../../core/ports/provider.ts';
import type { FleetLog, KnownInstance } from '../../log/fleet/fleet-log.ts';
import type { StoreRef } from '../janitor.ts';
import type { ActivityPorts } from '../ports/index.ts';
import {
  endLeaving,
  mostIdle,
  noteGone,
  noteOverdue,
  noteReady,
  noteReplaced,
  noteUnwanted,
  Strangers,
} from './endings.ts';
import type { Seen } from './endings.ts';
import { carryOut, launch } from './launches.ts';
import { Memory, planning } from './planning.ts';
import type { Pass } from './planning.ts';
import type { FleetPorts } from '../ports/fleet.ts';

/** `moving`: something boots or leaves. `nothing`: nothing is wanted and nothing is there. */
export type Tended = 'moving' | 'still' | 'nothing';

/** Prices move slowly. */
const pricesMs = 60_000;

export class FleetKeeper {
  readonly #ports: ActivityPorts;
  readonly #strangers = new Strangers();
  readonly #memory = new Memory();
  #last: Promise<unknown> = Promise.resolve();
  #prices: { readonly at: number; readonly asked: string; readonly spot: SpotPrices } | undefined;

  constructor(ports: ActivityPorts) {
    this.#ports = ports;
  }

  get #fleet(): FleetPorts {
    return this.#ports.fleet;
  }

  /** One pass at a time: an attempt of the activity that is late may still be at work. */
  tend(ref: StoreRef): Promise<Tended> {
    const pass = this.#last.catch(() => undefined).then(() => this.#pass(ref));
    this.#last = pass;
    // The workflow tries again; meanwhile people see why nothing happens.
    return pass.catch((error: unknown) => {
      this.#fleet.noteTrouble(errorToJson(error).message);
      throw error;
    });
  }

  async #pass({ store }: StoreRef): Promise<Tended> {
    const log = this.#fleet.openFleet(await this.#ports.openStore(store));
    log.refresh();
    const wanted = await log.wanted();
    if (wanted === undefined) return 'nothing';
    const launches = await this.#answerLaunches(log);
    const seen = await this.#look(log, wanted.spec);
    await this.#keepBooks(log, wanted, seen);
    const spot = await this.#spotPrices(wanted.spec);
    await this.#decide(log, launches, { wanted, seen, spot, living: await living(log) });
    await endLeaving(this.#fleet, log, await living(log), seen);
    const left = await living(log);
    if (left.length === 0 && boughtPools(wanted.spec).length === 0) return 'nothing';
    return left.every(({ ready, leaving }) => ready !== undefined && leaving === undefined) ? 'still' : 'moving';
  }

  /**
   * Returns how many launches each pool has had. The plan must not use the result of a launch that was decided after
   * this.
   */
  async #answerLaunches(log: FleetLog): Promise<Map<string, number>> {
    const counts = new Map<string, number>();
    for (const pool of await log.launchedPools()) {
      const launches = [...(await log.launches(pool))];
      counts.set(pool, launches.length);
      for (const launched of launches) await carryOut(this.#fleet, log, launched, this.#ports.now());
    }
    return counts;
  }

  /** Asks the regions of today's pools, and those of instances that earlier pools have left. */
  async #look(log: FleetLog, spec: FleetSpec): Promise<Seen> {
    const today = boughtPools(spec).map(([, { ec2 }]) => ec2.region);
    const before = (await living(log)).map(({ launch: { machine } }) => machine.region);
    const clouds = new Map<string, { readonly region: string; readonly instance: CloudInstance }>();
    for (const region of new Set([...today, ...before]))
      for (const instance of await this.#fleet.provider.list(region, log.stack))
        clouds.set(instance.id, { region, instance });
    const present = new Map((await this.#ports.listWorkers()).map((entry) => [entry.instance, entry]));
    return { clouds, present, now: this.#ports.now() };
  }

  /** Notes what has ended and what is to leave, and ends what this stack does not know as its own, or not any more. */
  async #keepBooks(log: FleetLog, wanted: FleetRecord, seen: Seen): Promise<void> {
    await noteGone(this.#fleet, log, await living(log), seen);
    await noteReady(log, await living(log), seen);
    await noteOverdue(log, await living(log), wanted.spec, seen.now);
    await noteUnwanted(log, await living(log), wanted, seen.now);
    // An instance that had vanished from the cloud's list may come back, too.
    const known = new Set((await living(log)).map(({ id }) => id));
    const unknown = [...seen.clouds.values()].filter(
      ({ instance: { id, state } }) => !known.has(id) && (state === 'running' || state === 'pending'),
    );
    const again = this.#strangers.again(unknown.map(({ instance }) => instance.id));
    for (const { region, instance } of unknown.filter(({ instance: { id } }) => again.includes(id))) {
      await this.#fleet.provider.terminate(region, [instance.id]);
      this.#fleet.say(`ended ${instance.id}: no launch of this stack needs it`);
    }
  }

  async #spotPrices(spec: FleetSpec): Promise<SpotPrices> {
    const pools = boughtPools(spec).filter(([, { markets }]) => markets.includes('spot'));
    const asked = JSON.stringify(pools.map(([, { ec2 }]) => [ec2.region, ec2.types]));
    const now = this.#ports.now().getTime();
    if (this.#prices?.asked === asked && now - this.#prices.at < pricesMs) return this.#prices.spot;
    const spot = new Map<string, number>();
    for (const [, { ec2 }] of pools)
      for (const price of await this.#fleet.provider.spotPrices(ec2.region, ec2.types))
        spot.set(spotKey(price), price.usdPerHour);
    this.#prices = { at: now, asked, spot };
    return spot;
  }

  /** Plans, notes the plan, and carries it out. */
  async #decide(log: FleetLog, launches: Map<string, number>, pass: Pass): Promise<void> {
    const { input, notes, stopped } = await planning(this.#fleet, log, pass, this.#memory);
    const planned = plan(input);
    const prices = [...pass.spot].map(([key, usdPerHour]) => {
      const [type = '', zone = ''] = key.split(' ');
      return { type, zone, usdPerHour };
    });
    const at = pass.seen.now.toISOString();
    this.#fleet.notePlan({ ...planned, notes: [...notes, ...planned.notes], at, prices, stopped });
    for (const { run, because } of planned.pauses) await this.#fleet.pauseRun(log.store, run, because);
    await noteReplaced(log, pass.living, pass.seen, planned.reasons);
    const needed = new Set(input.demands.map(({ pool }) => pool));
    const contested = new Set<string>();
    for (const decision of planned.decisions)
      if (decision.to <= decision.from) await this.#giveBack(log, pass, decision, needed.has(decision.pool));
      else if (!contested.has(decision.pool) && !(await this.#buy(log, launches, pass, decision)))
        contested.add(decision.pool);
  }

  /** False when another control process buys for this pool. */
  async #buy(
    log: FleetLog,
    launches: Map<string, number>,
    { wanted, seen }: Pass,
    decision: Decision,
  ): Promise<boolean> {
    const room = wanted.spec.max_instances - (await living(log)).length;
    const count = Math.min(decision.to - decision.from, room);
    if (count <= 0) return true;
    const n = (launches.get(decision.pool) ?? 0) + 1;
    launches.set(decision.pool, n);
    return launch(this.#fleet, log, wanted.spec, { ...decision, n, to: decision.from + count }, seen.now);
  }

  /** `isNeeded`: runs need the pool, and may need more of it again soon. */
  async #giveBack(
    log: FleetLog,
    { wanted, seen, living: all }: Pass,
    { pool, place, from, to, because }: Decision,
    isNeeded: boolean,
  ): Promise<void> {
    const isHeld = ({ launchedAt }: KnownInstance) =>
      isNeeded && wanted.scale[pool] === undefined && seen.now.getTime() - Date.parse(launchedAt) < billedMs;
    const there = all.filter(
      ({ launch: of, leaving }) => leaving === undefined && of.pool === pool && samePlace(of.place, place),
    );
    for (const { id } of mostIdle(
      there.filter((one) => !isHeld(one)),
      seen.present,
      from - to,
    )) {
      const decided = await log.noteLeaving({ id, at: seen.now.toISOString(), ending: 'unneeded', because });
      if (decided) this.#fleet.say(because);
    }
  }
}

/** The shortest time that is billed: giving back sooner saves nothing. */
const billedMs = leastBilledSeconds * 1_000;

const living = async (log: FleetLog): Promise<KnownInstance[]> =>
  (await log.instances()).filter(({ ended }) => ended === undefined);
