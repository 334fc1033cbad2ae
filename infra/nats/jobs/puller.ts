/**
 * The worker side of dispatch. It pulls one message at a time while slots are free, claims the job, keeps the message
 * alive while the work makes progress, and tells the waiter how the job ended.
 */
import { jetstream } from '@nats-io/jetstream';
import type { Consumer, JsMsg } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/nats-core';
import { PetrelError, errorToJson } from '../../../core/errors.ts';
import type { MachineNeeds } from '../../../core/machine-needs.ts';
import {
  claimReply,
  claimSubject,
  eventSubject,
  jobConsumer,
  jobMessage,
  jobStream,
  mostRecordChars,
  wireVersion,
} from '../../../core/wire/messages.ts';
import type { ClaimReply, JobEvent, JobMessage, Timing } from '../../../core/wire/messages.ts';
import type { Role } from '../../../core/roles.ts';
import type { WorkerIdentity } from '../../../core/wire/worker-identity.ts';
import { faultPoint } from '../../../log/faults/index.ts';
import { provenFailure } from '../../../log/objects/result-proof.ts';
import { askToDeclare } from '../declarations.ts';
import { targetOf } from '../connection.ts';
import { workerApiPrefix } from '../exchange.ts';
import { readMessage } from '../incoming.ts';
import { linkOf } from '../link.ts';

/**
 * After this many deliveries that no waiter claimed, the message is dropped. A waiter that needs the job publishes it
 * again.
 */
const maxUnclaimed = 5;
/** How long a request for a job stays open at the server. Every free worker has one, so short ones would load it. */
const pullMs = 10_000;
/** Pause after the queue refused a request, for instance while the server reads its streams. */
const refusedMs = 50;
/** The number of refusals in a row for the same reason, about a second of them, that do not pass by themselves. */
const troubleAfter = 20;

export interface JobProgress {
  done: number;
  total: number;
  note: string;
}

/** The answer for a job that this worker does not run now. */
export interface Refusal {
  /** The reason for the waiter. */
  readonly because: string;
  /** Delay after which the server delivers the message again. */
  readonly delayMs: number;
}

/** What the waiter of a job gave this process, so that it runs the job. */
export type Claim = Pick<Extract<ClaimReply, { answer: 'go' }>, 'alone' | 'secret' | 'weights' | 'scorer' | 'first'>;

/** How a job came, and what its sender is told of it. */
type Delivery = Pick<JsMsg, 'ack' | 'ackAck' | 'nak' | 'term' | 'working'> & { readonly deliveries: number };

const ofQueue = (raw: JsMsg): Delivery => ({
  deliveries: raw.info.deliveryCount,
  ack: () => raw.ack(),
  ackAck: () => raw.ackAck(),
  nak: (delayMs) => raw.nak(delayMs),
  term: (reason) => raw.term(reason),
  working: () => raw.working(),
});

/** It was sent to this worker alone: no queue waits to hear of it. */
const ofSender: Delivery = {
  deliveries: 1,
  ack() {},
  ackAck: async () => true,
  nak() {},
  term() {},
  working() {},
};

export interface PullerPorts {
  readonly nc: NatsConnection;
  readonly timing: Timing;
  readonly identity: WorkerIdentity;
  /** How the earlier process of this worker name ended. */
  readonly predecessorEnded?: string | undefined;
  readonly role: Role;
  readonly profile: string;
  /** There are jobs with these needs, which have queues of their own. */
  readonly onNeeds?: (needs: readonly MachineNeeds[]) => void;
  /** Resolves when a slot is free, and takes it; `leave` frees it. */
  readonly room: { enter(): Promise<void>; leave(): void };
  /**
   * Why this worker does not run the job now (its trainer is leased to another run, it lacks a secret); undefined: it
   * runs it. `deliveries`: how often the server has delivered this message.
   */
  readonly refuse: (message: JobMessage, deliveries: number) => Promise<Refusal | undefined>;
  /** Jobs that this worker holds or is claiming, by run and job id: one set for all of its pullers. */
  readonly inFlight: Set<string>;
  /**
   * Runs the job and creates its result object, with the proof of the claim. Resolves with its bytes; undefined when
   * another process has created it.
   */
  readonly handle: (message: JobMessage, progress: JobProgress, claim: Claim) => Promise<Uint8Array | undefined>;
  /** A counter of this process's progress. When it stands still for too long, the message is no longer kept alive. */
  readonly ticks: () => number;
  readonly onFailure: (message: JobMessage, error: unknown) => void;
  readonly onSuccess: (message: JobMessage) => void;
  /** The queue has refused to hand out jobs for a while. Called once until a request succeeds. */
  readonly onTrouble: (error: unknown) => void;
  /** Another worker has claimed a job that this one works on: it was without a connection for too long. */
  readonly onClaimLost: (message: JobMessage) => void;
}

export class Puller {
  readonly #ports: PullerPorts;
  #stopped = false;
  readonly #leaving = deferred();
  readonly #running = new Set<Promise<void>>();
  /** The last refusal of the queue, and how often it was repeated. */
  #refused = { text: '', times: 0 };

  constructor(ports: PullerPorts) {
    this.#ports = ports;
  }

  /** Ends after `stop`, when the in-flight jobs are finished. Survives a lost connection and a wiped queue. */
  async run(): Promise<void> {
    let consumer: Consumer | undefined;
    while (!this.#stopped) {
      await Promise.race([this.#ports.room.enter(), this.#leaving.promise]);
      if (this.#stopped) break;
      let message: JsMsg | null = null;
      try {
        consumer ??=
          (await Promise.race([linkOf(this.#ports.nc).orLost(this.#open()), this.#leaving.promise])) ?? undefined;
        message = this.#stopped || consumer === undefined ? null : await this.#next(consumer);
        this.#refused = { text: '', times: 0 };
      } catch (error) {
        // The connection or the stream was lost: declare the stream again when the server is back.
        consumer = undefined;
        this.#noteRefusal(error);
        await this.#reconnected();
      }
      if (message !== null && this.#stopped) {
        message.nak(); // it arrived while this worker was told to leave
        message = null;
      }
      if (message === null) this.#ports.room.leave();
      else this.#track(this.#serve(message).finally(() => this.#ports.room.leave()));
    }
    await Promise.all(this.#running);
  }

  /** A job that the control process has sent to this worker alone. It does not wait for a free slot. */
  take(message: JobMessage): void {
    if (this.#stopped) return; // unanswered, it goes to the queue
    this.#tell(message, { v: wireVersion, type: 'received' });
    if (!this.#ports.inFlight.has(keyOf(message))) this.#track(this.#consider(ofSender, message));
  }

  stop(): void {
    this.#stopped = true;
    this.#leaving.resolve();
  }

  async #open(): Promise<Consumer> {
    const { nc, identity, role, profile } = this.#ports;
    const needs = await askToDeclare(nc, identity, { what: 'jobs', role, profile });
    this.#ports.onNeeds?.(needs);
    return jetstream(nc, { apiPrefix: targetOf(nc).jobsApi ?? workerApiPrefix }).consumers.get(
      jobStream(role),
      jobConsumer(role, profile),
    );
  }

  /**
   * The next message, or null after a while or after `stop`. The request stays open at the server then, and when the
   * connection is lost the client may repeat it: a message that comes nevertheless is returned to the queue.
   */
  async #next(consumer: Consumer): Promise<JsMsg | null> {
    const answer = consumer.next({ expires: pullMs });
    let message: JsMsg | null = null;
    try {
      message = await Promise.race([linkOf(this.#ports.nc).orLost(answer), this.#leaving.promise.then(() => null)]);
      return message;
    } finally {
      if (message === null)
        answer.then(
          (late) => late?.nak(),
          () => undefined,
        );
    }
  }

  #noteRefusal(error: unknown): void {
    const { message: text } = errorToJson(error);
    this.#refused = { text, times: text === this.#refused.text ? this.#refused.times + 1 : 1 };
    if (this.#refused.times === troubleAfter) this.#ports.onTrouble(error);
  }

  /** Resolves when connected, and after a short pause, because a connected server may still refuse. */
  async #reconnected(): Promise<void> {
    await Promise.race([linkOf(this.#ports.nc).connected(), this.#leaving.promise]);
    await new Promise((resolve) => setTimeout(resolve, refusedMs));
  }

  #track(work: Promise<void>): void {
    this.#running.add(work);
    void work.finally(() => this.#running.delete(work));
  }

  async #serve(raw: JsMsg): Promise<void> {
    const message = readMessage(raw, jobMessage);
    if (message === undefined) {
      console.error(`${raw.subject}: dropped what is not a job message of this version`);
      return raw.term('not a job message of this version');
    }
    // The server delivered the message again because this worker was silent for a while, or it was also sent to this
    // worker alone. Running the job twice would not be faster.
    if (this.#ports.inFlight.has(keyOf(message))) return raw.nak(this.#ports.timing.ackWaitMs);
    await this.#consider(ofQueue(raw), message);
  }

  async #consider(delivery: Delivery, message: JobMessage): Promise<void> {
    const { inFlight } = this.#ports;
    // Marked before the claim, so that of two copies of a message the second one cannot claim too.
    inFlight.add(keyOf(message));
    try {
      const refusal = await this.#refusal(delivery, message);
      if (refusal === undefined) await this.#claimAndWork(delivery, message);
      else this.#giveBack(delivery, message, refusal);
    } finally {
      inFlight.delete(keyOf(message));
    }
  }

  /** The check may read a store for seconds. Until then the message is kept alive. */
  async #refusal(delivery: Delivery, message: JobMessage): Promise<Refusal | undefined> {
    const pulse = setInterval(() => delivery.working(), this.#ports.timing.progressMs);
    try {
      return await this.#ports.refuse(message, delivery.deliveries);
    } finally {
      clearInterval(pulse);
    }
  }

  #giveBack(delivery: Delivery, message: JobMessage, { because, delayMs }: Refusal): void {
    this.#tell(message, { v: wireVersion, type: 'queued', because });
    delivery.nak(delayMs);
  }

  async #claimAndWork(delivery: Delivery, message: JobMessage): Promise<void> {
    faultPoint('claim.before', factsOf(message));
    const reply = await this.#claim(message);
    faultPoint('claim.after', factsOf(message));
    if (reply === undefined) {
      return delivery.deliveries >= maxUnclaimed
        ? delivery.term('no process waits for this job')
        : delivery.nak(this.#ports.timing.progressMs);
    }
    if (reply.answer === 'go') await this.#work(delivery, message, reply);
    else if (reply.answer === 'drop') delivery.term('its waiter no longer wants it');
    else delivery.nak(this.#ports.timing.progressMs);
  }

  async #claim(message: JobMessage): Promise<ClaimReply | undefined> {
    const { nc, identity, role, predecessorEnded, timing } = this.#ports;
    const { incarnation } = identity;
    try {
      const request = JSON.stringify({ v: wireVersion, jobId: message.jobId, incarnation, predecessorEnded });
      const answer = await linkOf(nc).orLost(
        nc.request(claimSubject(role, message.runId, message.jobId, identity), request, { timeout: timing.claimMs }),
      );
      return readMessage(answer, claimReply);
    } catch {
      // No responder, or no answer in time: no process waits for the job now. The message returns to the queue.
      return undefined;
    }
  }

  async #work(delivery: Delivery, message: JobMessage, claim: Claim): Promise<void> {
    const progress: JobProgress = { done: 0, total: 0, note: '' };
    const pulse = this.#keepAlive(delivery, message, progress);
    const unheard = linkOf(this.#ports.nc).onBack(() => void this.#claimAgain(message));
    try {
      const result = new TextDecoder().decode(await this.#ports.handle(message, progress, claim));
      const isTold = result !== '' && result.length <= mostRecordChars;
      this.#tell(message, { v: wireVersion, type: 'done', ...(isTold && { result }) });
      this.#ports.onSuccess(message);
      faultPoint('ack.before', factsOf(message));
      delivery.ack();
      faultPoint('ack.after', factsOf(message));
    } catch (error) {
      this.#ports.onFailure(message, error);
      await delivery.ackAck().catch(() => false);
      const { incarnation } = this.#ports.identity;
      const kind = error instanceof PetrelError ? error.kind : 'unknown';
      const failed = { v: wireVersion, type: 'failed', incarnation, kind, error: errorToJson(error) } as const;
      this.#tell(message, provenFailure(failed, claim.secret));
    } finally {
      clearInterval(pulse);
      unheard();
    }
  }

  /**
   * Claims again after an interruption of the connection, when the job may be another worker's. Without an answer this
   * one goes on.
   */
  async #claimAgain(message: JobMessage): Promise<void> {
    const reply = await this.#claim(message);
    if (reply?.answer === 'held') this.#ports.onClaimLost(message);
  }

  /**
   * Calls `working()` while the progress counter moves. A stuck compute thread loses its job after `stallMs`, which is
   * longer than any pause of real work.
   */
  #keepAlive(delivery: Delivery, message: JobMessage, progress: JobProgress): NodeJS.Timeout {
    const { ticks, timing } = this.#ports;
    let last = ticks();
    let movedAt = performance.now();
    return setInterval(() => {
      const now = ticks();
      if (now !== last) movedAt = performance.now();
      last = now;
      if (performance.now() - movedAt > timing.stallMs) return;
      delivery.working();
      this.#tell(message, { v: wireVersion, type: 'progress', ...progress });
    }, timing.progressMs);
  }

  #tell(message: JobMessage, event: JobEvent): void {
    if (this.#ports.nc.isClosed()) return; // leaving: the result object tells the waiter, if there is one
    this.#ports.nc.publish(eventSubject(message.runId, message.jobId, this.#ports.identity), JSON.stringify(event));
  }
}

function deferred(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((settle) => (resolve = settle));
  return { promise, resolve };
}

const factsOf = ({ stage, jobId, runId, at }: JobMessage) => ({ stage, jobId, runId, iteration: at.iteration });
const keyOf = ({ runId, jobId }: JobMessage) => `${runId} ${jobId}`;
