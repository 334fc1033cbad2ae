/**
 * The work queues, the journal and the presence bucket. The control process declares them on every connect, so a wiped
 * NATS store is rebuilt.
 */
import {
  AckPolicy,
  DiscardPolicy,
  JetStreamApiError,
  RetentionPolicy,
  StorageType,
  jetstreamManager,
} from '@nats-io/jetstream';
import type { JetStreamManager } from '@nats-io/jetstream';
import { Kvm } from '@nats-io/kv';
import type { KV } from '@nats-io/kv';
import { nanos } from '@nats-io/nats-core';
import type { NatsConnection } from '@nats-io/nats-core';
import {
  jobConsumer,
  jobConsumerFilter,
  jobStream,
  jobStreamSubjects,
  presenceBucket,
} from '../../core/wire/messages.ts';
import type { Timing } from '../../core/wire/messages.ts';
import { journalStream, journalStreamSubjects } from '../../core/wire/journal.ts';
import { targetOf } from './connection.ts';
import { roles } from '../../core/roles.ts';
import type { Role } from '../../core/roles.ts';

const dayMs = 24 * 3600 * 1000;
const dedupeMs = 2 * 60 * 1000;

/**
 * Limit of one work queue. A job message has a few kilobytes and a run has a few hundred jobs at once, so more than
 * this is an error.
 */
const maxQueueBytes = 256 * 1024 * 1024;
const maxPresenceBytes = 64 * 1024 * 1024;
/** The oldest entries of the journal are dropped first. */
const maxJournalBytes = 512 * 1024 * 1024;

/** The server's error code for a stream that exists with another configuration. */
const otherConfiguration = 10058;
/** Code of NATS for a stream that does not exist. */
const missingStream = 10059;
/** No consumer of this name, by the server's numbers. */
const missingConsumer = 10014;

/**
 * Idempotent. Work queues keep a message until it is acked. `discard: new` makes a full queue refuse new messages with
 * an error.
 */
export async function ensureStreams(nc: NatsConnection, timing: Timing): Promise<JetStreamManager> {
  const jsm = await jetstreamManager(nc);
  const num_replicas = targetOf(nc).replicas ?? 1;
  for (const role of roles) {
    await ensureStream(jsm, {
      num_replicas,
      name: jobStream(role),
      subjects: [jobStreamSubjects(role)],
      retention: RetentionPolicy.Workqueue,
      storage: StorageType.File,
      discard: DiscardPolicy.New,
      max_age: nanos(dayMs),
      max_bytes: maxQueueBytes,
      duplicate_window: nanos(dedupeMs),
    });
  }
  await ensureStream(jsm, { ...journalSettings, num_replicas });
  await declarePresence(nc, timing);
  return jsm;
}

type StreamSettings = Parameters<JetStreamManager['streams']['add']>[0];

/** Creates the stream, or updates one that an older build created. */
async function ensureStream(jsm: JetStreamManager, config: StreamSettings): Promise<void> {
  try {
    await jsm.streams.add(config);
  } catch (error) {
    if (!(error instanceof JetStreamApiError) || error.code !== otherConfiguration) throw error;
    await jsm.streams.update(config.name, config);
  }
}

/** True when a queue refused a message because it is full. */
export function isQueueFull(error: unknown): boolean {
  return error instanceof JetStreamApiError && /maximum (bytes|messages) exceeded/.test(error.message);
}

/** One durable consumer for a role and profile, shared by all workers that can serve it. Deliveries are unlimited. */
export async function ensureConsumer(
  jsm: JetStreamManager,
  role: Role,
  profile: string,
  timing: Timing,
): Promise<string> {
  const name = jobConsumer(role, profile);
  await jsm.consumers.add(jobStream(role), {
    durable_name: name,
    filter_subject: jobConsumerFilter(role, profile),
    ack_policy: AckPolicy.Explicit,
    ack_wait: nanos(timing.ackWaitMs),
    max_ack_pending: 10_000,
    max_waiting: 512,
  });
  return name;
}

/**
 * The place in the queue up to which every message for the consumer was delivered at least once; 0 when there is no
 * such consumer.
 */
export async function handedOut(jsm: JetStreamManager, role: Role, profile: string): Promise<number> {
  try {
    return (await jsm.consumers.info(jobStream(role), jobConsumer(role, profile))).delivered.stream_seq;
  } catch (error) {
    if (error instanceof JetStreamApiError && error.code === missingConsumer) return 0;
    throw error;
  }
}

/**
 * Written without waiting, and read and purged per job. A lost entry is written again, or its tokens are decoded again.
 */
const journalSettings: StreamSettings = {
  name: journalStream,
  subjects: [journalStreamSubjects],
  retention: RetentionPolicy.Limits,
  storage: StorageType.File,
  discard: DiscardPolicy.Old,
  max_age: nanos(dayMs), // longer than any job takes, so that no entry expires before its sample is done
  max_bytes: maxJournalBytes,
  allow_direct: true,
};

/** Entries expire after the bucket's age limit; every renewal restarts it. */
async function declarePresence(nc: NatsConnection, timing: Timing): Promise<void> {
  await new Kvm(nc).create(presenceBucket, {
    history: 1,
    ttl: timing.presenceMs,
    storage: StorageType.Memory,
    max_bytes: maxPresenceBytes,
    replicas: targetOf(nc).replicas ?? 1,
  });
}

/** The bucket of presence; undefined before a control process has declared it. */
export async function openPresence(nc: NatsConnection): Promise<KV | undefined> {
  try {
    return await new Kvm(nc).open(presenceBucket);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

const isMissing = (error: unknown): boolean => error instanceof JetStreamApiError && error.code === missingStream;

/**
 * Keys (`presenceKey`) of the workers that have an entry, expired markers of deletion among them. The bucket's own list
 * of keys would leave a consumer behind for five minutes with each call.
 */
export async function presenceNames(nc: NatsConnection): Promise<string[]> {
  const prefix = `$KV.${presenceBucket}.`;
  const jsm = await jetstreamManager(nc);
  const { state } = await jsm.streams.info(`KV_${presenceBucket}`, { subjects_filter: `${prefix}>` });
  return Object.keys(state.subjects ?? {}).map((subject) => subject.slice(prefix.length));
}
