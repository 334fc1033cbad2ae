/** What passes over the stack's NATS while the bench measures. */
import type { NatsConnection } from '@nats-io/nats-core';
import {
  jobMessage,
  jobStreamSubjects,
  ownJobSubject,
  presencesSubject,
  workerGone,
  workerGoneSubject,
} from '../../core/wire/messages.ts';
import type { JobMessage } from '../../core/wire/messages.ts';
import { roles } from '../../core/roles.ts';
import { readMessage } from '../../infra/nats/incoming.ts';

const acks = '$JS.ACK.>';
const requests = '$JS.API.>';

export class Traffic {
  /** All jobs that were sent, to a queue or to one worker, the newest last. */
  readonly jobs: JobMessage[] = [];
  /** Time of the first publication of a job, by run and job id. */
  readonly publishedAt = new Map<string, number>();
  /** The same for the newest time. */
  readonly publishedLast = new Map<string, number>();
  /** Names of workers that the control process has called gone, with the time. */
  readonly goneAt = new Map<string, number>();
  handedBack = 0;
  presences = 0;
  /** Requests to JetStream. */
  requests = 0;

  constructor(nc: NatsConnection) {
    const now = () => performance.timeOrigin + performance.now();
    for (const subject of [...roles.map(jobStreamSubjects), ownJobSubject('*.*.*')])
      nc.subscribe(subject, {
        callback: (error, raw) => {
          const job = error === null ? readMessage(raw, jobMessage) : undefined;
          if (job === undefined) return;
          this.jobs.push(job);
          const name = `${job.runId} ${job.jobId}`;
          if (!this.publishedAt.has(name)) this.publishedAt.set(name, now());
          this.publishedLast.set(name, now());
        },
      });
    nc.subscribe(acks, { callback: (_error, { data }) => void (this.handedBack += isNak(data) ? 1 : 0) });
    nc.subscribe(requests, { callback: () => void (this.requests += 1) });
    nc.subscribe(presencesSubject, { callback: () => void (this.presences += 1) });
    nc.subscribe(workerGoneSubject, {
      callback: (error, raw) => {
        const gone = error === null ? readMessage(raw, workerGone) : undefined;
        if (gone !== undefined) this.goneAt.set(gone.worker, now());
      },
    });
  }
}

const isNak = (data: Uint8Array): boolean => new TextDecoder().decode(data.subarray(0, 4)) === '-NAK';
