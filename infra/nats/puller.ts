/**
 * The worker side of dispatch: pull one message a time while slots are free, claim it, keep it alive while its work
 * makes progress, tell the waiter how it ended.
 */
import { jetstream } from '@nats-io/jetstream';
import type { Consumer, JsMsg } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/nats-core';
import { PetrelError, errorToJson } from '../../core/errors.ts';
import {
  claimReply,
  claimSubject,
  eventSubject,
  jobMessage,
  jobStream,
  wireVersion,
} from '../../core/wire/messages.ts';
import type { ClaimReply, JobEvent, JobMessage, Timing } from '../../core/wire/messages.ts';
import type { Role } from '../../core/roles.ts';
import { faultPoint } from '../faults/index.ts';
import { readMessage } from './incoming.ts';
import { linkOf } from './link.ts';
import { ensureConsumer, ensureStreams } from './streams.ts';

/** Deliveries without anybody waiting after which a message is dropped: whoever wants the job publishes it again. */
const maxUnclaimed = 5;
/** Between two tries of a queue that is being made or read back. */
const refusedMs = 50;

export interface JobProgress {
  done: number;
  total: number;
  note: string;
}

/** A job that another worker may do, or this one later. */
export interface Refusal {
  /** For whoever waits for the job; undefined when it is about to be done elsewhere. */
  readonly because: string | undefined;
  /** How soon the job is offered again. */
  readonly delayMs: number;
}

export interface PullerPorts {
  readonly nc: NatsConnection;
  readonly timing: Timing;
  readonly worker: string;
  readonly incarnation: string;
  /** How the process of this name ended that was there before. */
  readonly predecessorEnded?: string | undefined;
  readonly role: Role;
  readonly profile: string;
  /** Resolves when there is room for one more job, and takes it; `leave` gives it back. */
  readonly room: { enter(): Promise<void>; leave(): void };
  /**
   * Why this worker will not do the job now (its trainer is leased to another run, it lacks a secret); undefined = it will.
   * `deliveries`: how often the queue has handed out this message.
   */
  readonly refuse: (message: JobMessage, deliveries: number) => Promise<Refusal | undefined>;
  /** Does the job and creates its result object. */
  readonly handle: (message: JobMessage, progress: JobProgress, alone: boolean) => Promise<void>;
  /** Rises with committed work of this process; a job whose count stands still is not kept alive. */
  readonly ticks: () => number;
  readonly onFailure: (message: JobMessage, error: unknown) => void;
  readonly onSuccess: (message: JobMessage) => void;
}

export class Puller {
  readonly #ports: PullerPorts;
  #stopped = false;
  readonly #leaving = deferred();
  readonly #running = new Set<Promise<void>>();
  /** Jobs being done, by run and job. */
  readonly #inFlight = new Set<string>();

  constructor(ports: PullerPorts) {
    this.#ports = ports;
  }

  /** Ends after `stop`, when the jobs in hand are finished. Survives a lost connection and a wiped queue. */
  async run(): Promise<void> {
    let consumer: Consumer | undefined;
    while (!this.#stopped) {
      await Promise.race([this.#ports.room.enter(), this.#leaving.promise]);
      if (this.#stopped) break;
      let message: JsMsg | null = null;
      try {
        consumer ??= await linkOf(this.#ports.nc).orLost(this.#open());
        message = this.#stopped ? null : await this.#next(consumer);
      } catch {
        // Lost connection, or the queue is gone: declare it again when the server is back.
        consumer = undefined;
        await this.#reconnected();
      }
      if (message !== null && this.#stopped) {
        message.nak(); // it came in while this worker was told to leave
        message = null;
      }
      if (message === null) this.#ports.room.leave();
      else this.#track(this.#serve(message).finally(() => this.#ports.room.leave()));
    }
    await Promise.all(this.#running);
  }

  stop(): void {
    this.#stopped = true;
    this.#leaving.resolve();
  }

  async #open(): Promise<Consumer> {
    const { nc, role, profile, timing } = this.#ports;
    const jsm = await ensureStreams(nc);
    const name = await ensureConsumer(jsm, role, profile, timing);
    return jetstream(nc).consumers.get(jobStream(role), name);
  }

  /** One message, or none for a while. A request that the client makes again on its own when it is back may still be answered: that message goes to another. */
  async #next(consumer: Consumer): Promise<JsMsg | null> {
    const answer = consumer.next({ expires: 2_000 });
    return linkOf(this.#ports.nc)
      .orLost(answer)
      .catch((error: unknown) => {
        answer.then(
          (late) => late?.nak(),
          () => undefined,
        );
        throw error;
      });
  }

  /** Resolves when there is a server to ask, and not at once when it is there and refuses. */
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
    // Delivered again although it is being done: this worker was silent for a while. Doing it twice would not be quicker.
    if (this.#inFlight.has(keyOf(message))) return raw.nak(this.#ports.timing.ackWaitMs);
    // From before the claim on: of two copies of a message one must not overtake the other.
    this.#inFlight.add(keyOf(message));
    try {
      const refusal = await this.#refusal(raw, message);
      if (refusal === undefined) await this.#claimAndWork(raw, message);
      else this.#giveBack(raw, message, refusal);
    } finally {
      this.#inFlight.delete(keyOf(message));
    }
  }

  /** A look at a store may take seconds: the message stays with this worker meanwhile. */
  async #refusal(raw: JsMsg, message: JobMessage): Promise<Refusal | undefined> {
    const pulse = setInterval(() => raw.working(), this.#ports.timing.progressMs);
    try {
      return await this.#ports.refuse(message, raw.info.deliveryCount);
    } finally {
      clearInterval(pulse);
    }
  }

  #giveBack(raw: JsMsg, message: JobMessage, { because, delayMs }: Refusal): void {
    if (because !== undefined)
      this.#tell(message, { v: wireVersion, type: 'queued', worker: this.#ports.worker, because });
    raw.nak(delayMs);
  }

  async #claimAndWork(raw: JsMsg, message: JobMessage): Promise<void> {
    faultPoint('claim.before', factsOf(message));
    const reply = await this.#claim(message);
    faultPoint('claim.after', factsOf(message));
    if (reply === undefined) {
      return raw.info.deliveryCount >= maxUnclaimed
        ? raw.term('nobody waits for it')
        : raw.nak(this.#ports.timing.progressMs);
    }
    if (reply.answer === 'drop') return raw.term('dropped by its waiter');
    if (reply.answer === 'held') return raw.nak(this.#ports.timing.progressMs);
    await this.#work(raw, message, reply.alone);
  }

  async #claim(message: JobMessage): Promise<ClaimReply | undefined> {
    const { nc, worker, incarnation, predecessorEnded, timing } = this.#ports;
    try {
      const request = JSON.stringify({ v: wireVersion, jobId: message.jobId, worker, incarnation, predecessorEnded });
      const answer = await linkOf(nc).orLost(
        nc.request(claimSubject(message.runId, message.jobId), request, { timeout: timing.claimMs }),
      );
      return readMessage(answer, claimReply);
    } catch {
      // No responders, or no answer in time: nobody waits now. The message goes back to the queue.
      return undefined;
    }
  }

  async #work(raw: JsMsg, message: JobMessage, alone: boolean): Promise<void> {
    const progress: JobProgress = { done: 0, total: 0, note: '' };
    const pulse = this.#keepAlive(raw, message, progress);
    try {
      await this.#ports.handle(message, progress, alone);
      this.#tell(message, { v: wireVersion, type: 'done', worker: this.#ports.worker });
      this.#ports.onSuccess(message);
      faultPoint('ack.before', factsOf(message));
      raw.ack();
      faultPoint('ack.after', factsOf(message));
    } catch (error) {
      this.#ports.onFailure(message, error);
      await raw.ackAck().catch(() => false);
      this.#tell(message, {
        v: wireVersion,
        type: 'failed',
        worker: this.#ports.worker,
        kind: error instanceof PetrelError ? error.kind : 'unknown',
        error: errorToJson(error),
      });
    } finally {
      clearInterval(pulse);
    }
  }

  /** `working()` follows the progress counter: a wedged compute thread loses its job, after the longest pause that honest work makes. */
  #keepAlive(raw: JsMsg, message: JobMessage, progress: JobProgress): NodeJS.Timeout {
    const { ticks, timing, worker } = this.#ports;
    let last = ticks();
    let movedAt = performance.now();
    return setInterval(() => {
      const now = ticks();
      if (now !== last) movedAt = performance.now();
      last = now;
      if (performance.now() - movedAt > timing.stallMs) return;
      raw.working();
      this.#tell(message, { v: wireVersion, type: 'progress', worker, ...progress });
    }, timing.progressMs);
  }

  #tell(message: JobMessage, event: JobEvent): void {
    if (this.#ports.nc.isClosed()) return; // leaving: the result object, if there is one, tells it
    this.#ports.nc.publish(eventSubject(message.runId, message.jobId), JSON.stringify(event));
  }
}

function deferred(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((settle) => (resolve = settle));
  return { promise, resolve };
}

const factsOf = ({ stage, jobId, runId, at }: JobMessage) => ({ stage, jobId, runId, iteration: at.iteration });
const keyOf = ({ runId, jobId }: JobMessage) => `${runId} ${jobId}`;
