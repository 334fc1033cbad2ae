/** A worker process: holds roles, pulls their jobs, says that it is there. */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { NatsConnection } from '@nats-io/nats-core';
import { errorToJson, PetrelError, PreemptedError, RetryableError } from '../core/errors.ts';
import type { ErrorJson } from '../core/errors.ts';
import { keys } from '../core/records/keys.ts';
import { recordFormat } from '../core/records/schema.ts';
import type { ResultRecord } from '../core/records/schema.ts';
import type { Store } from '../core/ports.ts';
import type { RewardInput, Role, Stage } from '../core/wire/jobs.ts';
import { leaseRelease, leaseSubject, wireVersion } from '../core/wire/messages.ts';
import type { JobMessage, Presence, Timing } from '../core/wire/messages.ts';
import type { Notice } from '../infra/fleet/notice.ts';
import { readMessage } from '../infra/nats/incoming.ts';
import { Journal } from '../infra/nats/journal.ts';
import { PresenceBeacon, watchPresence } from '../infra/nats/presence.ts';
import { Puller } from '../infra/nats/puller.ts';
import type { JobProgress, Refusal } from '../infra/nats/puller.ts';
import { faultPoint } from '../infra/faults/index.ts';
import { storesByUrl } from '../infra/store/open-stores.ts';
import { encodeRecord } from '../infra/store/records.ts';
import { watchLoopDelay } from '../infra/telemetry/loop-delay.ts';
import { lineWriter } from '../infra/telemetry/run-log-lines.ts';
import { engineTicks } from '../native/ticks.ts';
import { drain, goodbyeMs, InHand, within } from './drain.ts';
import { EngineClient } from './engine/client.ts';
import type { EngineAnswer } from './engine/client.ts';
import { anyProfile, deterministicProfile } from './engine/profile.ts';
import { TrainerLease } from './lease.ts';
import { Neighbours } from './neighbours.ts';
import type { WorkerOptions } from './options.ts';
import { RewardRole } from './reward/score.ts';
import { Gate, Slots } from './slots.ts';

/** Failures in a row, of unknown kind, after which a worker stops pulling. */
const failuresToUnhealthy = 3;
/** How long an unhealthy worker shows itself before it leaves, so that its supervisor starts a fresh one. */
const unhealthyMs = 10_000;
/** Rollout jobs side by side: their samples share the engine's slots, so a queue of a few keeps it full. */
const slotsOf: Readonly<Record<Role, number>> = { trainer: 1, rollout: 8, reward: 2 };

/**
 * How soon a job that is another trainer's is offered again, at random up to twice as late: two trainers that get each
 * other's jobs in step would hand them to and fro for ever.
 */
const handOverMs = 10;

export interface WorkerPorts {
  readonly nc: NatsConnection;
  readonly timing: Timing;
  readonly home: string;
  /** Ends the process: the engine's memory cannot be trusted any more. */
  readonly die: (error: Error) => void;
  /** Ends the process in order, for a fresh one in its place. */
  readonly renew: () => void;
}

export class Worker {
  readonly #options: WorkerOptions;
  readonly #ports: WorkerPorts;
  readonly #incarnation = randomBytes(6).toString('hex');
  readonly #since = new Date().toISOString();
  readonly #lease = new TrainerLease({
    changed: () => this.#beacon.tell(),
    freed: (runId) => this.#engine?.release(runId),
  });
  readonly #neighbours: Neighbours;
  readonly #gate = new Gate();
  readonly #reward: RewardRole;
  readonly #beacon: PresenceBeacon;
  readonly #journal: Journal;
  readonly #loopDelay = watchLoopDelay();
  readonly #stores = storesByUrl();
  readonly #jobs = new Set<string>();
  readonly #hands = new Set<InHand>();
  /** How long the last job of each stage took. */
  readonly #usualMs = new Map<Stage, number>();
  #leaving: Notice | undefined;
  #pullers: Puller[] = [];
  #running: Promise<void>[] = [];
  #engine: EngineClient | undefined;
  #state: Presence['state'] = 'starting';
  #failuresInARow = 0;
  #lastError: ErrorJson | undefined;
  #rewardTicks = 0;

  constructor(options: WorkerOptions, ports: WorkerPorts) {
    this.#options = options;
    this.#ports = ports;
    this.#reward = new RewardRole(join(ports.home, 'cache'));
    this.#neighbours = new Neighbours(this.#incarnation, ports.timing.presenceMs);
    this.#journal = new Journal(ports.nc, this.#incarnation, { lost: () => this.#engine?.journalLost() });
    this.#beacon = new PresenceBeacon(ports.nc, ports.timing, () => this.#presence());
  }

  /** Ready when it returns: pulling, and announced. */
  async start(): Promise<void> {
    const { roles, threads } = this.#options;
    if (roles.some((role) => role !== 'reward')) {
      this.#engine = await EngineClient.start({
        threads,
        cache: join(this.#ports.home, 'cache'),
        incarnation: this.#incarnation,
        journalMs: this.#ports.timing.journalMs,
        onDeath: this.#ports.die,
      });
    }
    this.#listenForReleases();
    watchPresence(this.#ports.nc, (entry) => this.#meet(entry));
    for (const role of roles) this.#pull(role);
    this.#state = 'ready';
    this.#loopDelay.restart();
    this.#beacon.start();
  }

  /** Stops pulling, finishes what can be finished in time, hands back the rest, says goodbye: all inside the grace. */
  async stop(notice: Notice = { reason: 'told to stop', graceMs: 20_000 }): Promise<void> {
    const until = performance.now() + notice.graceMs - goodbyeMs;
    this.#leaving = notice;
    this.#state = 'draining';
    this.#beacon.tell();
    console.log(`leaving: ${notice.reason}; ${(notice.graceMs / 1000).toFixed(1)} s, ${this.#hands.size} jobs in hand`);
    for (const puller of this.#pullers) puller.stop();
    this.#engine?.handBack(notice.reason);
    await drain(notice, until, {
      hands: () => this.#hands,
      ended: Promise.all(this.#running),
      usualMs: (stage) => this.#usualMs.get(stage),
      saveMs: () => this.#engine?.saveMs,
      now: () => performance.now(),
    });
    await this.#saveLast(until);
    await within(goodbyeMs, this.#sayGoodbye());
  }

  /** A trainer whose job was handed back is in the midst of it still: it has no state to save. */
  async #saveLast(until: number): Promise<void> {
    const engine = this.#engine;
    const left = until - performance.now();
    if (
      engine === undefined ||
      !this.#options.roles.includes('trainer') ||
      [...this.#hands].some(({ role }) => role === 'trainer')
    )
      return;
    const last = await within(left, engine.saveLast((engine.saveMs ?? 0) < left));
    if (last?.runId !== undefined)
      lineWriter(this.#ports.nc, last.runId, this.#options.name)('info', `leaving: ${last.text}`);
    console.log(`leaving: ${last?.text ?? 'no time to save the last state'}`);
  }

  async #sayGoodbye(): Promise<void> {
    await this.#beacon.stop();
    await this.#ports.nc.flush().catch(() => undefined);
    await this.#reward.close();
    await this.#engine?.close();
  }

  #pull(role: Role): void {
    const profiles = this.#profiles(role);
    const room = new Slots(slotsOf[role]);
    for (const profile of profiles) {
      const puller = new Puller({
        nc: this.#ports.nc,
        timing: this.#ports.timing,
        worker: this.#options.name,
        incarnation: this.#incarnation,
        predecessorEnded: this.#options.predecessorEnded,
        role,
        profile,
        room: profiles.length === 1 ? room : new Slots(slotsOf[role]),
        refuse: (message) => (role === 'trainer' ? this.#refuseTraining(message.runId) : undefined),
        handle: (message, progress, alone) => this.#handle(role, message, progress, alone),
        ticks: () => (this.#engine === undefined ? 0 : this.#engine.ticks + engineTicks()) + this.#rewardTicks,
        onSuccess: () => this.#succeeded(),
        onFailure: (message, error) => this.#failed(message, error),
      });
      this.#pullers.push(puller);
      this.#running.push(puller.run());
    }
  }

  /** Runs that do not ask for bits, and those whose bits this engine makes. Scorers have no arithmetic of ours. */
  #profiles(role: Role): readonly string[] {
    return role === 'reward' || this.#engine === undefined
      ? [anyProfile]
      : [anyProfile, deterministicProfile(this.#engine.facts)];
  }

  async #handle(role: Role, message: JobMessage, progress: JobProgress, alone: boolean): Promise<void> {
    if (this.#leaving !== undefined) throw new PreemptedError('Leaving', `handed back: ${this.#leaving.reason}`);
    const hand = new InHand(role, message.stage, progress);
    this.#jobs.add(message.jobId);
    this.#hands.add(hand);
    this.#beacon.tell();
    const work = this.#gate
      .hold(alone, () => this.#begin(hand, role, message, progress))
      .finally(() => this.#hands.delete(hand));
    try {
      await Promise.race([work, hand.handedBack]);
    } finally {
      this.#jobs.delete(message.jobId);
      this.#beacon.tell();
    }
  }

  /** Its turn has come, unless it was handed back meanwhile. */
  async #begin(hand: InHand, role: Role, message: JobMessage, progress: JobProgress): Promise<void> {
    if (hand.isOver) return;
    const began = performance.now();
    hand.begin(began);
    await this.#work(role, message, progress);
    this.#usualMs.set(message.stage, performance.now() - began);
  }

  async #work(role: Role, message: JobMessage, progress: JobProgress): Promise<void> {
    const store = await this.#store(message.store);
    const key = keys.result(message.runId, message.jobId);
    if ((await store.head(key)) !== undefined) return;
    const facts = { kind: 'result', stage: message.stage, runId: message.runId, iteration: message.at.iteration };
    faultPoint('job.begin', facts);
    const answer =
      role === 'reward' ? await this.#score(store, message, progress) : await this.#compute(role, message, progress);
    const record: ResultRecord = {
      format: recordFormat,
      jobId: message.jobId,
      stage: message.stage,
      output: { ...answer.output },
      timings: { [`timing_s/${message.stage}`]: answer.seconds, ...answer.counts },
      writer: { process: this.#options.name, at: new Date().toISOString() },
    };
    faultPoint('result.before', facts);
    const outcome = await store.create(key, encodeRecord(record));
    // Another did it meanwhile, this process was thought dead: what is there counts, and nothing else of this job is kept.
    if (outcome !== 'created')
      this.#say(message, 'warn', `${message.stage} ${message.jobId}: late result refused, another worker's is there`);
    faultPoint('result.after', facts);
    if (message.stage === 'rollout') this.#journal.purge(message.runId, message.jobId);
  }

  async #compute(role: Role, message: JobMessage, progress: JobProgress): Promise<EngineAnswer> {
    const engine = this.#engine;
    if (engine === undefined) throw new Error(`this worker holds ${this.#options.roles.join(', ')}, not ${role}`);
    const say = lineWriter(this.#ports.nc, message.runId, this.#options.name);
    const journal = message.stage === 'rollout' ? await this.#journal.read(message.runId, message.jobId) : [];
    const run = () =>
      engine.run(message, journal, {
        progress: (done, total, note) => Object.assign(progress, { done, total, note }),
        say: (text) => say('info', text),
        journal: (text, tokens) => this.#journal.publish(message.runId, message.jobId, text, tokens),
      });
    if (role === 'trainer') {
      // Asked again: another run's job, of another profile, may have come in since the first time.
      const refusal = this.#lease.refuse(message.runId, Date.now());
      if (refusal !== undefined) throw new RetryableError('TrainerLeased', refusal);
      return this.#lease.use(message.runId, run);
    }
    try {
      return await run();
    } catch (error) {
      await this.#journal.settled(); // before anybody else gets the job
      throw error;
    } finally {
      this.#lease.touch(message.runId);
    }
  }

  async #score(store: Store, message: JobMessage, progress: JobProgress): Promise<EngineAnswer> {
    const started = performance.now();
    // The message's input was made by the dispatcher from the stage's own type.
    const input = message.input as unknown as RewardInput;
    // A slow scorer is no wedged one: every call has a time limit of its own, which this process keeps.
    const pulse = setInterval(() => (this.#rewardTicks += 1), this.#ports.timing.progressMs);
    const told = (done: number, total: number) => void Object.assign(progress, { done, total, note: 'scoring' });
    const output = await this.#reward.score(store, message, input, told).finally(() => clearInterval(pulse));
    return { output: { ...output }, seconds: (performance.now() - started) / 1000, counts: {} };
  }

  /** A run has one trainer. It goes to that one while it is there; to any free one otherwise. */
  #refuseTraining(runId: string): Refusal | undefined {
    const elsewhere = this.#lease.runId !== runId && this.#neighbours.trains(runId, Date.now());
    if (elsewhere) return { because: undefined, delayMs: handOverMs * (1 + Math.random()) };
    const because = this.#lease.refuse(runId, Date.now());
    return because === undefined ? undefined : { because, delayMs: this.#ports.timing.progressMs };
  }

  #meet(entry: Presence): void {
    if (entry.incarnation === this.#incarnation) return;
    this.#neighbours.heard(entry, Date.now());
    if (entry.lease !== undefined && entry.lease === this.#lease.runId) this.#lease.yield(entry.lease);
  }

  #listenForReleases(): void {
    this.#ports.nc.subscribe(leaseSubject, {
      callback: (error, raw) => {
        if (error !== null) return;
        const message = readMessage(raw, leaseRelease);
        if (message === undefined) return;
        this.#engine?.abandon(message.runId);
        this.#lease.release(message.runId);
      },
    });
  }

  #store(url: string): Promise<Store> {
    return this.#stores(url);
  }

  #succeeded(): void {
    this.#failuresInARow = 0;
  }

  #say({ runId }: JobMessage, level: 'info' | 'warn' | 'error', text: string): void {
    lineWriter(this.#ports.nc, runId, this.#options.name)(level, text);
    console.error(`${runId} ${text}`);
  }

  #failed(message: JobMessage, error: unknown): void {
    const text =
      error instanceof PetrelError || !(error instanceof Error)
        ? errorToJson(error).message
        : (error.stack ?? error.message);
    this.#say(
      message,
      error instanceof PetrelError && error.kind !== 'terminal' ? 'warn' : 'error',
      `${message.stage} ${message.jobId}: ${text}`,
    );
    this.#lastError = errorToJson(error);
    if (error instanceof PetrelError) return;
    this.#failuresInARow += 1;
    if (this.#failuresInARow < failuresToUnhealthy) return;
    this.#state = 'unhealthy';
    for (const puller of this.#pullers) puller.stop();
    this.#beacon.tell();
    console.error(`unhealthy: ${failuresToUnhealthy} jobs in a row failed; last: ${errorToJson(error).message}`);
    void Promise.all(this.#running).then(() => setTimeout(() => this.#ports.renew(), unhealthyMs));
  }

  #presence(): Presence {
    const { name, roles, threads } = this.#options;
    const lease = this.#lease.runId;
    return {
      v: wireVersion,
      worker: name,
      incarnation: this.#incarnation,
      ...(this.#options.predecessorEnded === undefined ? {} : { predecessorEnded: this.#options.predecessorEnded }),
      pid: process.pid,
      host: hostname(),
      roles: [...roles],
      state: this.#state === 'ready' && this.#jobs.size > 0 ? 'busy' : this.#state,
      isa: this.#engine?.facts.isa ?? 'none',
      threads,
      profiles: [...this.#profiles('trainer')],
      ...(lease === undefined ? {} : { lease }),
      jobs: [...this.#jobs],
      failuresInARow: this.#failuresInARow,
      loopDelayMs: this.#loopDelay.p999Ms(),
      ...(this.#lastError === undefined ? {} : { lastError: this.#lastError }),
      since: this.#since,
    };
  }
}
