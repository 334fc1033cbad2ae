/**
 * What passes between the account of the control process and that of the workers. Everything else of either account
 * does not exist in the other one: a worker cannot name a stream, and `$JS.API` of its account is empty.
 *
 * The answer to a request goes to a subject that the requester chooses, and the server does not check that it may
 * publish there. In one account a worker could let the server or the control process delete a stream, or speak as the
 * control process, by asking with that subject. Between accounts the server puts a subject of its own in its place, and
 * what the worker chose counts in the account of the workers only.
 */
import type { Export, Import } from '@nats-io/jwt';
import { declarationsSubject, wantedNeedsSubject } from '../../core/wire/declarations.ts';
import { samplesTakenSubject } from '../../core/wire/ended-samples.ts';
import { joinsSubject, leaveNowSubject, leavesSubject, renewSubject } from '../../core/wire/join.ts';
import { journalReadsOf, journalSubject } from '../../core/wire/journal.ts';
import {
  claimsOf,
  eventsOf,
  leaseSubject,
  leaseTakenSubject,
  logsOf,
  ownJobSubject,
  presenceBucket,
  presencesSubject,
} from '../../core/wire/messages.ts';
import { permitsSubject } from '../../core/wire/permits.ts';
import { newWeightsSubject } from '../../core/wire/weights.ts';

/** Worker → control: requests, and messages without an answer. */
const services: readonly string[] = [
  declarationsSubject,
  claimsOf('*', '*', '*'),
  eventsOf('*', '*'),
  logsOf('*'),
  permitsSubject,
  joinsSubject,
  leavesSubject,
  journalSubject('*', '*', { instance: '*', worker: '*' }),
  journalReadsOf('*', '*'),
  presencesSubject,
  `$KV.${presenceBucket}.*.*.*`,
  '$JS.ACK.>',
];

/** Control → worker. */
const streams: readonly string[] = [
  wantedNeedsSubject,
  leaseSubject,
  leaseTakenSubject,
  ownJobSubject('*.*.*'),
  samplesTakenSubject('*.*.*'),
  newWeightsSubject,
  renewSubject,
  leaveNowSubject('*'),
];

/** Requests to JetStream: they reach the streams of the control account under this prefix. */
export const workerApiPrefix = 'JS.petrel.API';
const api = '$JS.API';
const apiRequests = [
  { request: 'CONSUMER.INFO.*.*', local: 'CONSUMER.INFO.$1.$2', answers: 'Singleton' },
  // The answer is a message of the queue, or says that the queue is empty.
  { request: 'CONSUMER.MSG.NEXT.*.*', local: 'CONSUMER.MSG.NEXT.$1.$2', answers: 'Stream' },
] as const;

/** Exports of the control account. */
export const offered: Export[] = [
  ...services.map((subject) => ({ name: subject, subject, type: 'service' as const })),
  ...apiRequests.map(({ request, answers }) => ({
    name: request,
    subject: `${api}.${request}`,
    type: 'service' as const,
    response_type: answers,
  })),
  ...streams.map((subject) => ({ name: subject, subject, type: 'stream' as const })),
];

/** Imports of the workers' account. `account`: the control account's id. */
export const takenFrom = (account: string): Import[] => [
  ...services.map((subject) => ({ name: subject, subject, account, type: 'service' as const })),
  ...apiRequests.map(({ request, local }) => ({
    name: request,
    subject: `${api}.${request}`,
    local_subject: `${workerApiPrefix}.${local}`,
    account,
    type: 'service' as const,
  })),
  ...streams.map((subject) => ({ name: subject, subject, account, type: 'stream' as const })),
];
