/** Takes the jobs that a worker runs: from the queues of its roles, and those that were sent to it alone. */
import type { NatsConnection } from '@nats-io/nats-core';
import { meets, needsWord, queueWithNeeds } from '../core/machine-needs.ts';
import type { MachineFacts, MachineNeeds } from '../core/machine-needs.ts';
import { anyProfile } from '../core/records/profile-ids.ts';
import type { Role } from '../core/roles.ts';
import { roleOf } from '../core/wire/jobs/index.ts';
import type { JobMessage, Timing } from '../core/wire/messages.ts';
import type { WorkerIdentity } from '../core/wire/worker-identity.ts';
import { Puller } from '../infra/nats/jobs/puller.ts';
import type { PullerPorts, Refusal } from '../infra/nats/jobs/puller.ts';
import { queuesOf } from './engine/engines/profile.ts';
import type { Engine } from './engine/process/client.ts';
import type { Health } from './health.ts';
import type { JobRunner } from './job-runner.ts';
import { leaseOf } from './lease.ts';
import type { TrainerLease } from './lease.ts';
import type { RewardRoom } from './reward/room.ts';
import type { RewardRole } from './reward/score.ts';
import { Slots } from './slots.ts';

/** Parallel rollout jobs. Their samples share the engine's slots, so a short queue of jobs keeps the engine busy. */
const slotsOf: Readonly<Record<Exclude<Role, 'reward'>, number>> = { trainer: 1, rollout: 8 };

/** Delay before a scoring job is delivered again when its run holds its share of the slots. */
const rewardSlotDelayMs = 250;

/**
 * Delay before a job is delivered again that this worker cannot run: short for a better worker, longer when there is
 * none.
 */
const unfitDelayMs = (deliveries: number) => Math.min(1_000, 10 * 2 ** Math.min(deliveries, 7));

export interface IntakePorts {
  readonly nc: NatsConnection;
  readonly identity: WorkerIdentity;
  /** The worker's name in records and logs. */
  readonly name: string;
  readonly timing: Timing;
  readonly machine: () => MachineFacts;
  /** Called when this worker begins to read other queues. */
  readonly changed: () => void;
  /** How the earlier process of this worker name ended. */
  readonly predecessorEnded: string | undefined;
  /** Undefined in a worker that only scores. */
  readonly engine: () => Engine | undefined;
  readonly runner: JobRunner;
  readonly health: Health;
  readonly lease: TrainerLease;
  readonly reward: RewardRole;
  readonly rewardRoom: RewardRoom;
}

export class Intake {
  readonly #ports: IntakePorts;
  readonly #pullers: Puller[] = [];
  readonly #running: Promise<void>[] = [];
  #isStopped = false;
  /** The puller of each role that takes the jobs which were sent to this worker alone. */
  readonly #ownJobs = new Map<Role, Puller>();
  /** Needs of jobs that this machine meets, by their word. */
  readonly #needs = new Map<string, MachineNeeds>();
  /** Jobs that this worker holds or is claiming, by run and job id. */
  readonly #claimed = new Set<string>();

  constructor(ports: IntakePorts) {
    this.#ports = ports;
  }

  /** The queues whose jobs this worker takes. */
  queues(role: Role): readonly string[] {
    const needs = [undefined, ...this.#needs.values()];
    return needs.flatMap((some) => this.#profiles(role).map((profile) => queueWithNeeds(profile, some)));
  }

  /** There are jobs with these needs: those that this machine meets are taken from their queues, too. */
  serve(wanted: readonly MachineNeeds[]): void {
    const fresh = wanted.filter((needs) => !this.#needs.has(needsWord(needs)) && meets(needs, this.#ports.machine()));
    if (fresh.length === 0) return;
    for (const needs of fresh) this.#needs.set(needsWord(needs), needs);
    for (const role of this.#ownJobs.keys())
      for (const needs of fresh)
        this.#pullFrom(
          role,
          this.#profiles(role).map((one) => queueWithNeeds(one, needs)),
        );
    this.#ports.changed();
  }

  /** Scoring needs no engine. */
  #profiles(role: Role): readonly string[] {
    const engine = this.#ports.engine();
    return role === 'reward' || engine === undefined ? [anyProfile] : engine.facts.flatMap(queuesOf);
  }

  /** Begins to take the jobs of this role. */
  pull(role: Role): void {
    this.#pullFrom(role, this.queues(role));
  }

  #pullFrom(role: Role, queues: readonly string[]): void {
    if (this.#isStopped) return;
    for (const queue of queues) {
      const puller = this.#puller(role, queue, this.#roomFor(role));
      this.#pullers.push(puller);
      if (!this.#ownJobs.has(role)) this.#ownJobs.set(role, puller);
      this.#running.push(puller.run());
    }
  }

  /** Takes a job that was sent to this worker alone. */
  take(message: JobMessage): void {
    this.#ownJobs.get(roleOf(message.stage))?.take(message);
  }

  stop(): void {
    this.#isStopped = true;
    for (const puller of this.#pullers) puller.stop();
  }

  /** Resolves when it was stopped and the jobs that it had taken have ended. */
  async ended(): Promise<void> {
    await Promise.all(this.#running);
  }

  #puller(role: Role, profile: string, room: PullerPorts['room']): Puller {
    const { nc, timing, identity, predecessorEnded, runner, health } = this.#ports;
    return new Puller({
      nc,
      timing,
      identity,
      predecessorEnded,
      role,
      profile,
      onNeeds: (needs) => this.serve(needs),
      room,
      inFlight: this.#claimed,
      refuse: (message, deliveries) => this.#refuse(role, message, deliveries),
      handle: (message, progress, claim) => runner.run(role, message, progress, claim),
      ticks: () => runner.ticks,
      onSuccess: (message) => health.succeeded(message),
      onFailure: (message, error) => health.failed(message, error),
      onTrouble: (error) => health.cannotPull(role, error),
      onClaimLost: (message) => runner.claimLost(message),
    });
  }

  /** The number of free slots; 0 while this worker takes no jobs. */
  #roomFor(role: Role): PullerPorts['room'] {
    const slots = role === 'reward' ? this.#roomForScoring() : new Slots(slotsOf[role]);
    return {
      enter: async () => {
        await slots.enter();
        await this.#ports.health.whenFit();
      },
      leave: () => slots.leave(),
    };
  }

  /** One puller waits for the shared room; those of other queues have as many slots each. */
  #roomForScoring(): PullerPorts['room'] {
    const { rewardRoom } = this.#ports;
    return this.#ownJobs.has('reward') ? new Slots(rewardRoom.slots) : rewardRoom;
  }

  async #refuse(role: Role, message: JobMessage, deliveries: number): Promise<Refusal | undefined> {
    const { health, name } = this.#ports;
    const lack = await health.lackFor(message);
    if (lack !== undefined)
      return { because: `${name} cannot run it: ${lack.message}`, delayMs: unfitDelayMs(deliveries) };
    if (role === 'trainer') return this.#refuseTraining(message);
    return role === 'reward' ? this.#refuseScoring(message) : undefined;
  }

  #refuseTraining(message: JobMessage): Refusal | undefined {
    const because = this.#ports.lease.refuse(leaseOf(message));
    return because === undefined ? undefined : { because, delayMs: this.#ports.timing.progressMs };
  }

  /** Samples that were scored ahead here need no slot. */
  #refuseScoring({ runId, follows }: JobMessage): Refusal | undefined {
    const { reward, rewardRoom } = this.#ports;
    if (follows !== undefined && reward.ahead.jobs.includes(follows)) return undefined;
    const because = rewardRoom.refuse(runId);
    return because === undefined ? undefined : { because, delayMs: rewardSlotDelayMs };
  }
}
