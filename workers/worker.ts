/**
 * A worker process: it has roles, takes their jobs, runs them and tells others of itself. This file puts its parts
 * together, starts them and ends them:
 *
 * - intake.ts takes jobs from the queues and refuses those that it cannot run now;
 * - job-runner.ts runs what was claimed, with the engine (engine/) or a scorer (reward/), and writes the result;
 * - inbox.ts hears what else it is told: leases, new weights, samples to score ahead;
 * - lease.ts keeps the trainer for one run; health.ts knows what it lacks and what failed;
 * - presence.ts says what others see of it; drain.ts ends its jobs when it leaves.
 */
import { join } from 'node:path';
import type { NatsConnection } from '@nats-io/nats-core';
import type { MachineFacts } from '../core/machine-needs.ts';
import type { Store } from '../core/ports/store.ts';
import type { Presence, Timing } from '../core/wire/messages.ts';
import { shownName } from '../core/wire/worker-identity.ts';
import type { WorkerIdentity } from '../core/wire/worker-identity.ts';
import type { Notice } from '../infra/fleet/notice.ts';
import { Journal } from '../infra/nats/journal/journal.ts';
import { PermitHolder } from '../infra/nats/permits/permit-holder.ts';
import { PresenceBeacon } from '../infra/nats/jobs/presence.ts';
import { stackName } from '../infra/stack/identity.ts';
import { storesByUrl } from '../infra/store/open-stores.ts';
import { RunLog } from '../log/run/run-log.ts';
import { watchLoopDelay } from '../infra/telemetry/loop-delay.ts';
import { lineWriter } from '../infra/telemetry/run-log-lines.ts';
import { drain, goodbyeMs, within } from './drain.ts';
import { EngineClient } from './engine/process/client.ts';
import type { Engine } from './engine/process/client.ts';
import type { Need } from './fitness.ts';
import { Health } from './health.ts';
import { openInbox } from './inbox.ts';
import { Intake } from './intake.ts';
import { JobRunner } from './job-runner.ts';
import { TrainerLease } from './lease.ts';
import type { Leaseholder } from './lease.ts';
import { buildNeed, roomNeed } from './needs.ts';
import type { WorkerRoles } from './options.ts';
import { presenceOf } from './presence.ts';
import { RewardRoom } from './reward/room.ts';
import { RewardRole } from './reward/score.ts';
import { sayOfRun } from './run-lines.ts';

/** How long an unhealthy worker stays visible before it exits and its supervisor starts a new one. */
const unhealthyMs = 10_000;

export interface WorkerPorts {
  readonly nc: NatsConnection;
  readonly identity: WorkerIdentity;
  /** Instance of the control process's machine. */
  readonly stackInstance: string;
  readonly timing: Timing;
  readonly home: string;
  /** Address of this machine at which other workers may ask for weights; undefined: they may not. */
  readonly servesOn?: () => Promise<string | undefined>;
  /** False for a store that the user of the stack never named: jobs in it are refused. */
  readonly isKnownStore: (url: string) => boolean | Promise<boolean>;
  /** Scorers of the user's own run in a sandbox only. Absent: also without one. */
  readonly closedToScorers?: boolean;
  /** Ends the process, because the engine's memory can no longer be trusted. */
  readonly die: (error: Error) => void;
  /** Ends the process in order; its supervisor starts a new one. */
  readonly renew: () => void;
  /** Absent: a thread of this process (EngineClient). */
  readonly engine?: Engine;
  /** Absent: one that calls scorers. */
  readonly rewardRole?: RewardRole;
  /** What this machine offers to jobs. Absent: nothing but its processor. */
  readonly machine?: () => MachineFacts;
  /** Build ids of this process's code and of the stack; absent where there is no stack. */
  readonly build?: { readonly own: string; readonly ofStack: () => string };
}

export class Worker {
  readonly #options: WorkerRoles;
  readonly #ports: WorkerPorts;
  readonly #since = new Date().toISOString();
  readonly #loopDelay = watchLoopDelay();
  readonly #cache: string;
  readonly #openStore: (url: string) => Promise<Store>;
  readonly #lease: TrainerLease;
  readonly #reward: RewardRole;
  readonly #health: Health;
  readonly #runner: JobRunner;
  readonly #intake: Intake;
  readonly #beacon: PresenceBeacon;
  #engine: Engine | undefined;
  #state: Presence['state'] = 'starting';
  #isAtRisk = false;

  constructor(options: WorkerRoles, ports: WorkerPorts) {
    const { nc, identity, timing, stackInstance } = ports;
    this.#options = options;
    this.#ports = ports;
    this.#cache = join(ports.home, 'cache');
    this.#openStore = storesByUrl(ports.isKnownStore);
    const name = shownName(identity, stackInstance);
    const changed = () => this.#beacon.tell();
    const engine = () => this.#engine;
    this.#lease = this.#makeLease(changed);
    this.#reward = ports.rewardRole ?? this.#makeReward(changed);
    this.#health = this.#makeHealth(changed);
    const journal = new Journal(nc, identity, { lost: () => this.#engine?.journalLost() });
    const rewardRoom = new RewardRoom();
    const shared = { nc, identity, timing, name, engine, lease: this.#lease, reward: this.#reward, rewardRoom };
    const { roles, predecessorEnded } = options;
    const openStore = this.#openStore;
    this.#runner = new JobRunner({ ...shared, roles, journal, openStore, say: sayOfRun(nc, identity), changed });
    const machine = ports.machine ?? (() => ({ pool: identity.instance, gpus: [] }));
    this.#intake = new Intake({
      ...{ ...shared, machine, predecessorEnded, changed },
      ...{ runner: this.#runner, health: this.#health },
    });
    this.#beacon = new PresenceBeacon(nc, timing, () => this.#presence());
  }

  /** Starts the worker: when this returns, it is pulling and has announced itself. */
  async start(): Promise<void> {
    const { roles } = this.#options;
    this.#engine = await this.#startEngine();
    openInbox({
      nc: this.#ports.nc,
      identity: this.#ports.identity,
      roles,
      openStore: this.#openStore,
      closedToScorers: this.#ports.closedToScorers === true,
      engine: this.#engine,
      intake: this.#intake,
      runner: this.#runner,
      health: this.#health,
      lease: this.#lease,
      reward: this.#reward,
    });
    await this.#health.check(this.#generalNeeds());
    for (const role of roles) this.#intake.pull(role);
    this.#state = 'ready';
    this.#loopDelay.restart();
    this.#beacon.start();
  }

  /** The cloud expects to take this machine back. It works on until its successor is there. */
  expectLoss(): void {
    this.#isAtRisk = true;
    this.#beacon.tell();
  }

  /**
   * Stops pulling, finishes the jobs that can be finished in time, requeues the rest and disconnects, all within the
   * grace period.
   */
  async stop(notice: Notice = { reason: 'told to stop', graceMs: 20_000 }): Promise<void> {
    const until = performance.now() + notice.graceMs - goodbyeMs;
    const { reason, graceMs } = notice;
    this.#runner.leave(reason);
    this.#state = 'draining';
    this.#beacon.tell();
    const { inFlight } = this.#runner;
    console.log(`leaving: ${reason}; ${(graceMs / 1000).toFixed(1)} s, ${inFlight.size} jobs in flight`);
    this.#intake.stop();
    this.#engine?.requeue(reason);
    await drain(notice, until, {
      inFlight: () => inFlight,
      ended: this.#intake.ended(),
      usualMs: (stage) => this.#runner.usualMs(stage),
      saveMs: () => this.#engine?.saveMs,
      now: () => performance.now(),
    });
    await this.#saveLast(until);
    await within(goodbyeMs, this.#sayGoodbye());
  }

  /** A trainer whose job was requeued is still in the middle of that job, so it has no state to save. */
  async #saveLast(until: number): Promise<void> {
    const engine = this.#engine;
    const left = until - performance.now();
    const isTraining = [...this.#runner.inFlight].some(({ role }) => role === 'trainer');
    if (engine === undefined || !this.#options.roles.includes('trainer') || isTraining) return;
    const last = await within(left, engine.saveLast((engine.saveMs ?? 0) < left));
    if (last?.runId !== undefined)
      lineWriter(this.#ports.nc, last.runId, this.#ports.identity)('info', `leaving: ${last.text}`);
    console.log(`leaving: ${last?.text ?? 'no time to save the last state'}`);
  }

  async #sayGoodbye(): Promise<void> {
    this.#beacon.stop();
    await this.#ports.nc.flush().catch(() => undefined);
    await this.#reward.close();
    await this.#engine?.close();
  }

  /** The engine of a worker that trains or samples. */
  async #startEngine(): Promise<Engine | undefined> {
    const { roles, threads } = this.#options;
    const { engine, identity, timing, die, servesOn: address } = this.#ports;
    const servesOn = await address?.();
    if (roles.every((role) => role === 'reward')) return undefined;
    if (engine !== undefined) return engine;
    return EngineClient.start({
      threads,
      cache: this.#cache,
      ...(servesOn !== undefined && { servesOn }),
      incarnation: identity.incarnation,
      journalMs: timing.journalMs,
      onDeath: die,
    });
  }

  #makeLease(changed: () => void): TrainerLease {
    const { timing } = this.#ports;
    return new TrainerLease(
      {
        changed,
        freed: (runId) => this.#engine?.release(runId),
        partFreed: (runId, components) => this.#engine?.release(runId, components),
        isActive: (holder) => this.#isActive(holder),
        log: (line) => console.log(line),
      },
      // A waiting job is delivered again every `progressMs`, to one of several trainers.
      { askEveryMs: timing.watchdogMs, waiterMs: 10 * timing.progressMs },
    );
  }

  #makeReward(changed: () => void): RewardRole {
    const { nc, identity } = this.#ports;
    return new RewardRole(
      this.#cache,
      (runId, limits) => new PermitHolder(nc, { runId, from: identity }, limits),
      changed,
    );
  }

  #makeHealth(changed: () => void): Health {
    const { nc, identity, closedToScorers = false } = this.#ports;
    return new Health({
      changed,
      say: sayOfRun(nc, identity),
      needs: () => ({
        cache: this.#cache,
        openStore: this.#openStore,
        engines: this.#engine?.facts ?? [],
        closedToScorers,
      }),
      broken: () => this.#renew(),
    });
  }

  #generalNeeds(): Need[] {
    const { build } = this.#ports;
    return [...(build === undefined ? [] : [buildNeed(build.own, build.ofStack)]), roomNeed(this.#cache)];
  }

  /** Takes no jobs any more, and lets the supervisor start a new process soon. */
  #renew(): void {
    this.#state = 'unhealthy';
    this.#intake.stop();
    this.#beacon.tell();
    void this.#intake.ended().then(() => setTimeout(() => this.#ports.renew(), unhealthyMs));
  }

  /** Is the run active, and does this stack still drive it? */
  async #isActive({ runId, store }: Leaseholder): Promise<boolean> {
    const log = new RunLog(await this.#openStore(store), runId);
    const state = (await log.status.newest())?.state;
    if (state !== 'queued' && state !== 'running') return false;
    const owner = (await log.newestTerm())?.record.owner;
    return owner === undefined || owner === stackName(this.#ports.home);
  }

  #presence(): Presence {
    return presenceOf({
      identity: this.#ports.identity,
      options: this.#options,
      since: this.#since,
      state: this.#state,
      isAtRisk: this.#isAtRisk,
      engine: this.#engine,
      profiles: [...new Set(this.#options.roles.flatMap((role) => this.#intake.queues(role)))],
      machine: this.#ports.machine?.(),
      loopDelayMs: this.#loopDelay.p999Ms(),
      lease: this.#lease,
      reward: this.#reward,
      jobs: this.#runner,
      health: this.#health,
    });
  }
}
