/** A worker process: it has roles, pulls their jobs, and publishes its presence. */
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { NatsConnection } from '@nats-io/nats-core';
import { errorToJson, PetrelError, PreemptedError, UnfitError } from '../core/errors.ts';
import type { ErrorJson } from '../core/errors.ts';
import { keys } from '../core/records/keys.ts';
import { recordFormat } from '../core/records/schema.ts';
import type { ResultRecord } from '../core/records/schema.ts';
import type { Store } from '../core/ports/store.ts';
import { roleOfStage } from '../core/wire/jobs.ts';
import type { Stage, Trains, UpdateInput } from '../core/wire/jobs.ts';
import type { Role } from '../core/roles.ts';
import { endedSamples, endedSamplesSubject, samplesTaken, samplesTakenSubject } from '../core/wire/ended-samples.ts';
import type { EndedSamples } from '../core/wire/ended-samples.ts';
import { checkJobInput, rewardInput, scoringSettings } from '../core/wire/job-inputs.ts';
import {
  jobMessage,
  leaseRelease,
  leaseSubject,
  leaseTaken,
  leaseTakenSubject,
  ownJobSubject,
  wireVersion,
} from '../core/wire/messages.ts';
import type { JobMessage, Presence, Timing } from '../core/wire/messages.ts';
import { holdersBefore, newWeights, newWeightsSubject } from '../core/wire/weights.ts';
import { identityText, shownName } from '../core/wire/worker-identity.ts';
import type { WorkerIdentity } from '../core/wire/worker-identity.ts';
import type { Notice } from '../infra/fleet/notice.ts';
import { readMessage } from '../infra/nats/incoming.ts';
import { Journal } from '../infra/nats/journal.ts';
import { PermitHolder } from '../infra/nats/permit-holder.ts';
import { PresenceBeacon } from '../infra/nats/presence.ts';
import { Puller } from '../infra/nats/puller.ts';
import type { Claim, JobProgress, PullerPorts, Refusal } from '../infra/nats/puller.ts';
import { faultPoint } from '../infra/faults/index.ts';
import { stackName } from '../infra/stack/identity.ts';
import { storesByUrl } from '../infra/store/open-stores.ts';
import { encodeRecord } from '../infra/store/records.ts';
import { proven } from '../infra/store/result-proof.ts';
import { RunLog } from '../infra/store/run-log.ts';
import { watchLoopDelay } from '../infra/telemetry/loop-delay.ts';
import { lineWriter } from '../infra/telemetry/run-log-lines.ts';
import { DecodingRate } from './decoding-rate.ts';
import type { DecodedSpan } from './decoding-rate.ts';
import { drain, goodbyeMs, InFlightJob, within } from './drain.ts';
import { EngineClient } from './engine/client.ts';
import type { Engine, EngineAnswer } from './engine/client.ts';
import { anyProfile } from '../core/records/profile-ids.ts';
import { queuesOf } from './engine/profile.ts';
import { Fitness } from './fitness.ts';
import type { Need } from './fitness.ts';
import { tellOfSamples } from './ended-samples.ts';
import { TrainerLease } from './lease.ts';
import { buildNeed, isOpenScorer, jobNeeds, missedNeed, roomNeed } from './needs.ts';
import type { NeedPorts } from './needs.ts';
import type { Leaseholder } from './lease.ts';
import type { WorkerRoles } from './options.ts';
import { RewardRoom } from './reward/room.ts';
import { RewardRole } from './reward/score.ts';
import type { ScoringReport } from './reward/score.ts';
import { Gate, Slots } from './slots.ts';

/** After this many failures of unknown kind in a row, a worker stops pulling. */
const failuresToUnhealthy = 3;
/** How long an unhealthy worker stays visible before it exits and its supervisor starts a new one. */
const unhealthyMs = 10_000;
/** Parallel rollout jobs. Their samples share the engine's slots, so a short queue of jobs keeps the engine busy. */
const slotsOf: Readonly<Record<Exclude<Role, 'reward'>, number>> = { trainer: 1, rollout: 8 };

/** Delay before a scoring job is delivered again when its run holds its share of the slots. */
const rewardSlotDelayMs = 250;

/**
 * Delay before a job is delivered again that this worker cannot run: short for a better worker, longer when there is
 * none.
 */
const unfitDelayMs = (deliveries: number) => Math.min(1_000, 10 * 2 ** Math.min(deliveries, 7));

/** The run, and the part of it, for which a trainer is leased. */
function leaseOf({ runId, store, input }: JobMessage): Leaseholder {
  const { part, components, standby } = input as Partial<Trains & Pick<UpdateInput, 'standby'>>;
  return { runId, store, ...(part === true && components && { components }), ...(standby === true && { standby }) };
}

/** What a rollout job that has just ended has decoded, and when: after its weights were there. */
function decodedBy({ seconds, counts }: EngineAnswer, to: number): DecodedSpan {
  const from = to - seconds + (counts['timing_s/load_weights'] ?? 0);
  return { from, to, tokens: counts['rollout/decoded_tokens'] ?? 0 };
}

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
  /** Build ids of this process's code and of the stack; absent where there is no stack. */
  readonly build?: { readonly own: string; readonly ofStack: () => string };
}

export class Worker {
  readonly #options: WorkerRoles;
  readonly #ports: WorkerPorts;
  readonly #identity: WorkerIdentity;
  /** The worker's name in records and logs. */
  readonly #name: string;
  readonly #since = new Date().toISOString();
  readonly #lease: TrainerLease;
  readonly #gate = new Gate();
  readonly #fitness = new Fitness(() => this.#beacon.tell());
  readonly #reward: RewardRole;
  readonly #rewardRoom = new RewardRoom();
  readonly #beacon: PresenceBeacon;
  readonly #journal: Journal;
  readonly #loopDelay = watchLoopDelay();
  readonly #stores: (url: string) => Promise<Store>;
  readonly #jobs = new Set<string>();
  readonly #inFlight = new Set<InFlightJob>();
  /** Duration of the last job of each stage. */
  readonly #usualMs = new Map<Stage, number>();
  readonly #decoding = new DecodingRate();
  #leaving: Notice | undefined;
  #pullers: Puller[] = [];
  /** The puller of each role that takes the jobs which were sent to this worker alone. */
  readonly #ownJobs = new Map<Role, Puller>();
  /** Jobs that this worker holds or is claiming, by run and job id. */
  readonly #claimed = new Set<string>();
  /** A trainer's state is one, so its jobs run one after the other. */
  readonly #trainerSlot = new Slots(slotsOf.trainer);
  #running: Promise<void>[] = [];
  #engine: Engine | undefined;
  #state: Presence['state'] = 'starting';
  #failuresInARow = 0;
  #lastError: ErrorJson | undefined;
  #lastErrorRun: string | undefined;
  #atRisk = false;
  #rewardTicks = 0;

  constructor(options: WorkerRoles, ports: WorkerPorts) {
    this.#options = options;
    this.#ports = ports;
    this.#identity = ports.identity;
    this.#name = shownName(this.#identity, ports.stackInstance);
    this.#stores = storesByUrl(ports.isKnownStore);
    this.#reward =
      ports.rewardRole ??
      new RewardRole(
        join(ports.home, 'cache'),
        (runId, limits) => new PermitHolder(ports.nc, { runId, from: ports.identity }, limits),
        () => this.#beacon.tell(),
      );
    this.#lease = new TrainerLease(
      {
        changed: () => this.#beacon.tell(),
        freed: (runId) => this.#engine?.release(runId),
        partFreed: (runId, components) => this.#engine?.release(runId, components),
        isActive: (holder) => this.#isActive(holder),
        log: (line) => console.log(line),
      },
      // A waiting job is delivered again every `progressMs`, to one of several trainers.
      { askEveryMs: ports.timing.watchdogMs, waiterMs: 10 * ports.timing.progressMs },
    );
    this.#journal = new Journal(ports.nc, this.#identity, { lost: () => this.#engine?.journalLost() });
    this.#beacon = new PresenceBeacon(ports.nc, ports.timing, () => this.#presence());
  }

  /** Starts the worker: when this returns, it is pulling and has announced itself. */
  async start(): Promise<void> {
    const { roles, threads } = this.#options;
    const servesOn = await this.#ports.servesOn?.();
    if (roles.some((role) => role !== 'reward')) {
      this.#engine =
        this.#ports.engine ??
        (await EngineClient.start({
          threads,
          cache: join(this.#ports.home, 'cache'),
          ...(servesOn !== undefined && { servesOn }),
          incarnation: this.#identity.incarnation,
          journalMs: this.#ports.timing.journalMs,
          onDeath: this.#ports.die,
        }));
    }
    this.#listenForReleases();
    if (roles.includes('trainer')) this.#listenForTakenLeases();
    if (roles.includes('reward')) this.#listenForEndedSamples();
    if (roles.includes('rollout')) this.#listenForWeights();
    await this.#fitness.firstLack(this.#generalNeeds());
    for (const role of roles) this.#pull(role);
    this.#listenForOwnJobs();
    this.#state = 'ready';
    this.#loopDelay.restart();
    this.#beacon.start();
  }

  /** The cloud expects to take this machine back. It works on until its successor is there. */
  expectLoss(): void {
    this.#atRisk = true;
    this.#beacon.tell();
  }

  /**
   * Stops pulling, finishes the jobs that can be finished in time, requeues the rest and disconnects, all within the
   * grace period.
   */
  async stop(notice: Notice = { reason: 'told to stop', graceMs: 20_000 }): Promise<void> {
    const until = performance.now() + notice.graceMs - goodbyeMs;
    this.#leaving = notice;
    this.#state = 'draining';
    this.#beacon.tell();
    console.log(
      `leaving: ${notice.reason}; ${(notice.graceMs / 1000).toFixed(1)} s, ${this.#inFlight.size} jobs in flight`,
    );
    for (const puller of this.#pullers) puller.stop();
    this.#engine?.requeue(notice.reason);
    await drain(notice, until, {
      inFlight: () => this.#inFlight,
      ended: Promise.all(this.#running),
      usualMs: (stage) => this.#usualMs.get(stage),
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
    if (
      engine === undefined ||
      !this.#options.roles.includes('trainer') ||
      [...this.#inFlight].some(({ role }) => role === 'trainer')
    )
      return;
    const last = await within(left, engine.saveLast((engine.saveMs ?? 0) < left));
    if (last?.runId !== undefined)
      lineWriter(this.#ports.nc, last.runId, this.#identity)('info', `leaving: ${last.text}`);
    console.log(`leaving: ${last?.text ?? 'no time to save the last state'}`);
  }

  async #sayGoodbye(): Promise<void> {
    this.#beacon.stop();
    await this.#ports.nc.flush().catch(() => undefined);
    await this.#reward.close();
    await this.#engine?.close();
  }

  #pull(role: Role): void {
    const profiles = this.#profiles(role);
    const room = this.#roomFor(role);
    for (const profile of profiles) {
      const puller = new Puller({
        nc: this.#ports.nc,
        timing: this.#ports.timing,
        identity: this.#identity,
        predecessorEnded: this.#options.predecessorEnded,
        role,
        profile,
        room: profiles.length === 1 ? room : this.#roomFor(role),
        inFlight: this.#claimed,
        refuse: (message, deliveries) => this.#refuse(role, message, deliveries),
        handle: (message, progress, claim) => this.#handle(role, message, progress, claim),
        ticks: () => (this.#engine?.ticks ?? 0) + this.#rewardTicks,
        onSuccess: (message) => this.#succeeded(message),
        onFailure: (message, error) => this.#failed(message, error),
        onTrouble: (error) => this.#cannotPull(role, error),
        onClaimLost: (message) => this.#claimLost(message),
      });
      this.#pullers.push(puller);
      if (!this.#ownJobs.has(role)) this.#ownJobs.set(role, puller);
      this.#running.push(puller.run());
    }
  }

  /** The number of free slots; 0 while this worker takes no jobs. */
  #roomFor(role: Role): PullerPorts['room'] {
    const slots = role === 'reward' ? this.#rewardRoom : new Slots(slotsOf[role]);
    return {
      enter: async () => {
        await slots.enter();
        await this.#fitness.whenFit();
      },
      leave: () => slots.leave(),
    };
  }

  #generalNeeds(): Need[] {
    const { build, home } = this.#ports;
    return [...(build === undefined ? [] : [buildNeed(build.own, build.ofStack)]), roomNeed(join(home, 'cache'))];
  }

  get #needPorts(): NeedPorts {
    const { home, closedToScorers = false } = this.#ports;
    return { cache: join(home, 'cache'), openStore: this.#stores, engines: this.#engine?.facts ?? [], closedToScorers };
  }

  async #refuse(role: Role, message: JobMessage, deliveries: number): Promise<Refusal | undefined> {
    const lack = await this.#fitness.firstLack(jobNeeds(message, this.#needPorts));
    if (lack !== undefined)
      return { because: `${this.#name} cannot run it: ${lack.message}`, delayMs: unfitDelayMs(deliveries) };
    if (role === 'trainer') return this.#refuseTraining(message);
    // Samples that were scored ahead here need no slot.
    const isHere = message.follows !== undefined && this.#reward.ahead.jobs.includes(message.follows);
    const because = role === 'reward' && !isHere ? this.#rewardRoom.refuse(message.runId) : undefined;
    return because === undefined ? undefined : { because, delayMs: rewardSlotDelayMs };
  }

  /** The queues whose jobs this worker takes. Scoring needs no engine. */
  #profiles(role: Role): readonly string[] {
    return role === 'reward' || this.#engine === undefined ? [anyProfile] : this.#engine.facts.flatMap(queuesOf);
  }

  async #handle(role: Role, message: JobMessage, progress: JobProgress, claim: Claim): Promise<void> {
    if (this.#leaving !== undefined) throw new PreemptedError('Leaving', `requeued: ${this.#leaving.reason}`);
    const job = new InFlightJob(role, message, progress);
    this.#jobs.add(message.jobId);
    this.#inFlight.add(job);
    this.#beacon.tell();
    const work = this.#gate
      .run(claim.alone, () => this.#begin(job, message, claim))
      .finally(() => this.#inFlight.delete(job));
    const ended = Promise.race([work, job.requeued]);
    try {
      await (role === 'reward' ? this.#rewardRoom.hold(message.runId, () => ended) : ended);
    } finally {
      this.#jobs.delete(message.jobId);
      this.#beacon.tell();
    }
  }

  /** Starts the job, unless it was requeued while it waited for a slot. */
  async #begin(job: InFlightJob, message: JobMessage, claim: Claim): Promise<void> {
    if (job.isOver) return;
    const began = performance.now();
    job.begin(began);
    await this.#work(job, message, claim);
    this.#usualMs.set(message.stage, performance.now() - began);
  }

  async #work({ role, progress, signal }: InFlightJob, message: JobMessage, claim: Claim): Promise<void> {
    const store = await this.#store(message.store);
    const key = keys.result(message.runId, message.jobId);
    if ((await store.head(key)) !== undefined) return;
    const { stage, runId, at } = message;
    const components = leaseOf(message).components?.join(' ') ?? 'all';
    const facts = { kind: 'result', stage, jobId: message.jobId, runId, iteration: at.iteration, components };
    faultPoint('job.begin', facts);
    const answer =
      role === 'reward'
        ? await this.#score(store, message, progress)
        : await this.#compute(role, message, progress, { signal, ...claim });
    const record: ResultRecord = {
      format: recordFormat,
      jobId: message.jobId,
      stage: message.stage,
      output: { ...answer.output },
      timings: { [`timing_s/${message.stage}`]: answer.seconds, ...answer.counts },
      writer: { process: this.#name, at: new Date().toISOString() },
    };
    faultPoint('result.before', facts);
    const outcome = await store.create(key, encodeRecord(proven(record, identityText(this.#identity), claim.secret)));
    // Another worker has finished the job because this process seemed dead, and this result is discarded. If the
    // existing one lacks its proof, the job comes again.
    if (outcome !== 'created')
      this.#say(
        message,
        'warn',
        `${message.stage} ${message.jobId}: late result refused; another worker's result exists`,
      );
    faultPoint('result.after', facts);
  }

  async #compute(
    role: Role,
    message: JobMessage,
    progress: JobProgress,
    { signal, secret, weights, scorer, first }: Claim & { readonly signal: AbortSignal },
  ): Promise<EngineAnswer> {
    checkJobInput(message.stage, message.input);
    const engine = this.#engine;
    if (engine === undefined) throw new Error(`this worker holds ${this.#options.roles.join(', ')}, not ${role}`);
    const say = lineWriter(this.#ports.nc, message.runId, this.#identity);
    const journal =
      message.stage === 'rollout' && first !== true ? await this.#journal.read(message.runId, message.jobId) : [];
    const run = () =>
      engine.run(
        message,
        { journal, weights },
        {
          signal,
          progress: (done, total, note) => Object.assign(progress, { done, total, note }),
          say: (text) => say('info', text),
          journal: (text, tokens) => this.#journal.publish({ ...message, secret }, text, tokens),
          ended: tellOfSamples(message, {
            scorer: this.#options.roles.includes('reward') ? identityText(this.#identity) : scorer,
            publish: (subject, text) => this.#ports.nc.publish(subject, text),
          }),
        },
      );
    if (role === 'trainer') return this.#lease.use(leaseOf(message), () => this.#trainerSlot.hold(run));
    const decoded = this.#decoding.begin(performance.now() / 1_000);
    try {
      const answer = await run();
      decoded(decodedBy(answer, performance.now() / 1_000));
      return answer;
    } catch (error) {
      decoded();
      await this.#journal.settled(); // before another worker gets the job
      throw error;
    }
  }

  async #score(store: Store, message: JobMessage, progress: JobProgress): Promise<EngineAnswer> {
    const started = performance.now();
    const input = rewardInput(message.input);
    // A slow scorer does not mean a stuck process: every call has its own time limit, which this process enforces.
    const pulse = setInterval(() => (this.#rewardTicks += 1), this.#ports.timing.progressMs);
    const say = lineWriter(this.#ports.nc, message.runId, this.#identity);
    const report: ScoringReport = {
      progress: (done, total) => void Object.assign(progress, { done, total, note: 'scoring' }),
      say: (text) => say('info', text),
    };
    const { output, ahead } = await this.#reward
      .score(store, message, input, report)
      .finally(() => clearInterval(pulse));
    const counts = { 'reward/samples_scored_ahead': ahead };
    return { output: { ...output }, seconds: (performance.now() - started) / 1000, counts };
  }

  #listenForEndedSamples(): void {
    this.#ports.nc.subscribe(endedSamplesSubject(identityText(this.#identity)), {
      callback: (error, raw) => {
        const told = error === null ? readMessage(raw, endedSamples) : undefined;
        if (told !== undefined) this.#scoreAhead(told);
      },
    });
    this.#ports.nc.subscribe(samplesTakenSubject(identityText(this.#identity)), {
      callback: (error, raw) => {
        const taken = error === null ? readMessage(raw, samplesTaken) : undefined;
        if (taken !== undefined) this.#reward.ahead.taken(taken.runId, taken.jobId);
      },
    });
  }

  #scoreAhead(told: EndedSamples): void {
    const scoring = scoringSettings(told.scoring);
    if (scoring === undefined || this.#leaving !== undefined || !this.#fitness.takesJobs) return;
    if (this.#ports.closedToScorers === true && isOpenScorer(scoring)) return; // its reward job is refused, too
    const say = lineWriter(this.#ports.nc, told.runId, this.#identity);
    const report: ScoringReport = { progress: () => {}, say: (text) => say('info', text) };
    this.#reward.scoreAhead(() => this.#store(told.store), told, scoring, report);
  }

  #refuseTraining(message: JobMessage): Refusal | undefined {
    const because = this.#lease.refuse(leaseOf(message));
    return because === undefined ? undefined : { because, delayMs: this.#ports.timing.progressMs };
  }

  #listenForOwnJobs(): void {
    this.#ports.nc.subscribe(ownJobSubject(identityText(this.#identity)), {
      callback: (error, raw) => {
        const message = error === null ? readMessage(raw, jobMessage) : undefined;
        if (message !== undefined) this.#ownJobs.get(roleOfStage[message.stage])?.take(message);
      },
    });
  }

  /** Another trainer works for a run for which this one waits, or which this one has too. */
  #listenForTakenLeases(): void {
    this.#ports.nc.subscribe(leaseTakenSubject, {
      callback: (error, raw) => {
        const taken = error === null ? readMessage(raw, leaseTaken) : undefined;
        if (taken === undefined || taken.by === identityText(this.#identity)) return;
        const isOtherKind = this.#lease.runId === taken.runId && this.#lease.standsBy !== (taken.standsBy === true);
        if (!isOtherKind) this.#lease.trainedElsewhere(taken.runId, taken.components);
      },
    });
  }

  /** Is the run active, and does this stack still drive it? */
  async #isActive({ runId, store }: Leaseholder): Promise<boolean> {
    const log = new RunLog(await this.#store(store), runId);
    const state = (await log.status())?.state;
    if (state !== 'queued' && state !== 'running') return false;
    const owner = (await log.newestTerm())?.record.owner;
    return owner === undefined || owner === stackName(this.#ports.home);
  }

  #listenForReleases(): void {
    this.#ports.nc.subscribe(leaseSubject, {
      callback: (error, raw) => {
        if (error !== null) return;
        const message = readMessage(raw, leaseRelease);
        if (message === undefined) return;
        if (message.turn === true) return this.#lease.release(message.runId);
        this.#engine?.abandon(message.runId);
        this.#reward.ahead.drop(message.runId);
        if (message.cancelled === true) this.#cancel(message.runId);
        this.#lease.release(message.runId);
      },
    });
  }

  #listenForWeights(): void {
    this.#ports.nc.subscribe(newWeightsSubject, {
      callback: (error, raw) => {
        const committed = error === null ? readMessage(raw, newWeights) : undefined;
        const place = committed?.order.indexOf(this.#engine?.serves ?? '') ?? -1;
        if (committed !== undefined && place > 0)
          this.#engine?.newWeights(committed, holdersBefore(committed.order, place));
      },
    });
  }

  /** Ends the run's jobs of every role, and its scorers. */
  #cancel(runId: string): void {
    for (const job of this.#inFlight) if (job.runId === runId) job.cancel(`${runId} has ended`);
    void this.#reward.endRun(runId);
  }

  #store(url: string): Promise<Store> {
    return this.#stores(url);
  }

  #succeeded(message: JobMessage): void {
    this.#failuresInARow = 0;
    this.#fitness.proven(jobNeeds(message, this.#needPorts));
  }

  #say({ runId }: JobMessage, level: 'info' | 'warn' | 'error', text: string): void {
    lineWriter(this.#ports.nc, runId, this.#identity)(level, text);
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
    this.#lastErrorRun = message.runId;
    if (error instanceof UnfitError) this.#noteLack(message, error);
    if (error instanceof PetrelError) return;
    this.#failuresInARow += 1;
    if (this.#failuresInARow < failuresToUnhealthy) return;
    this.#state = 'unhealthy';
    for (const puller of this.#pullers) puller.stop();
    this.#beacon.tell();
    console.error(`unhealthy: ${failuresToUnhealthy} jobs in a row failed; last: ${errorToJson(error).message}`);
    void Promise.all(this.#running).then(() => setTimeout(() => this.#ports.renew(), unhealthyMs));
  }

  /** Another worker has the job since this machine had no connection. */
  #claimLost({ runId, jobId, stage }: JobMessage): void {
    console.error(`${runId} ${stage} ${jobId}: another worker has it now`);
    for (const job of this.#inFlight)
      if (job.runId === runId && job.jobId === jobId) job.cancel('another worker has it');
  }

  /** The worker would look ready and take no job; it keeps trying. */
  #cannotPull(role: Role, error: unknown): void {
    const { message, ...rest } = errorToJson(error);
    this.#lastError = { ...rest, message: `the queue of ${role} jobs refuses to hand them out: ${message}` };
    this.#lastErrorRun = undefined;
    console.error(this.#lastError.message);
    this.#beacon.tell();
  }

  #noteLack(message: JobMessage, error: UnfitError): void {
    const need = missedNeed(error, message, this.#needPorts);
    if (need !== undefined) this.#fitness.note(need, error);
  }

  #shownState(): Presence['state'] {
    if (this.#state !== 'ready') return this.#state;
    if (!this.#fitness.takesJobs) return 'unhealthy';
    return this.#jobs.size > 0 ? 'busy' : 'ready';
  }

  #presence(): Presence {
    const { roles, threads } = this.#options;
    const { runId: lease, components, standsBy, isWanted } = this.#lease;
    const { lacks } = this.#fitness;
    const ahead = this.#reward.ahead.jobs;
    const lastError = lacks[0]?.error ?? this.#lastError;
    const { tokensPerSecond } = this.#decoding;
    return {
      v: wireVersion,
      ...this.#identity,
      ...(this.#options.predecessorEnded === undefined ? {} : { predecessorEnded: this.#options.predecessorEnded }),
      pid: process.pid,
      host: hostname(),
      roles: [...roles],
      state: this.#shownState(),
      engines: [...(this.#engine?.facts ?? [])],
      threads,
      profiles: [...this.#profiles('trainer')],
      ...(this.#engine?.serves === undefined ? {} : { serves: this.#engine.serves }),
      ...(lease === undefined ? {} : { lease }),
      ...(components === undefined ? {} : { trains: [...components] }),
      ...(isWanted && { wanted: isWanted }),
      ...(standsBy && { standsBy }),
      ...(this.#atRisk && { atRisk: true as const }),
      jobs: [...this.#jobs],
      ...(ahead.length > 0 && { ahead: [...ahead] }),
      ...(tokensPerSecond !== undefined && { tokensPerSecond: Math.round(tokensPerSecond * 10) / 10 }),
      failuresInARow: this.#failuresInARow,
      loopDelayMs: this.#loopDelay.p999Ms(),
      ...(lastError === undefined ? {} : { lastError }),
      ...(lastError === undefined || lacks.length > 0 || this.#lastErrorRun === undefined
        ? {}
        : { lastErrorRun: this.#lastErrorRun }),
      ...(lacks.length === 0 ? {} : { lacks: [...lacks] }),
      since: this.#since,
    };
  }
}
