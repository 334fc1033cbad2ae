/**
 * What the credential of a worker permits. The server enforces it, so a machine that is not trusted can speak only for
 * its own workers, and hears only what is for them (docs/decisions/0019-accounts-for-workers.md).
 */
import type { User } from '@nats-io/jwt';
import { roleSets } from '../../../core/roles.ts';
import type { Role } from '../../../core/roles.ts';
import { declarationSubject, wantedNeedsSubject } from '../../../core/wire/declarations.ts';
import { endedSamplesSubject, samplesTakenSubject } from '../../../core/wire/ended-samples.ts';
import { joinSubject, leaveNowSubject, leaveSubject, renewSubject } from '../../../core/wire/join.ts';
import { journalReadSubject, journalSubject } from '../../../core/wire/journal.ts';
import {
  claimSubject,
  eventSubject,
  jobStream,
  leaseSubject,
  leaseTakenSubject,
  logSubject,
  ownJobSubject,
  presenceEntrySubject,
  presenceSubject,
} from '../../../core/wire/messages.ts';
import { permitSubject } from '../../../core/wire/permits.ts';
import { newWeightsSubject } from '../../../core/wire/weights.ts';
import { inboxOf } from '../../../core/wire/worker-identity.ts';
import { workerApiPrefix } from '../exchange.ts';

/** Longest message of a worker, in bytes: one of ended samples or of the journal. */
const mostBytes = 2 * 1024 * 1024;
/** A worker has about ten subscriptions and one for each request in flight. */
const mostSubscriptions = 1_000;

/** Permissions of the workers of one machine, in a pool with these roles. */
export function workerPermissions(instance: string, roles: readonly Role[]): Partial<User> {
  const own = { instance, worker: '*' };
  const isRollout = roles.includes('rollout');
  const isReward = roles.includes('reward');
  return {
    payload: mostBytes,
    subs: mostSubscriptions,
    pub: {
      allow: [
        declarationSubject(own),
        ...roles.map((role) => claimSubject(role, '*', '*', own)),
        eventSubject('*', '*', own),
        logSubject('*', own),
        // A worker of the pool has some of its roles.
        ...roleSets(roles).flatMap((some) => [
          presenceSubject({ ...own, roles: some }),
          presenceEntrySubject({ ...own, roles: some }),
        ]),
        ...roles.flatMap(queueSubjects),
        ...(isRollout
          ? [journalSubject('*', '*', own), journalReadSubject('*', '*', own), endedSamplesSubject('*.*.*')]
          : []),
        ...(isReward ? [permitSubject('*', own)] : []),
      ],
    },
    sub: {
      allow: [
        `${inboxOf(own)}.>`,
        ownJobSubject(`${instance}.*.*`),
        leaseSubject,
        wantedNeedsSubject,
        ...(roles.includes('trainer') ? [leaseTakenSubject] : []),
        ...(isRollout ? [newWeightsSubject] : []),
        ...(isReward ? [endedSamplesSubject(`${instance}.*.*`), samplesTakenSubject(`${instance}.*.*`)] : []),
      ],
    },
  };
}

interface JoinedMachine {
  readonly instance: string;
  readonly pool: string;
  readonly roles: readonly Role[];
}

/** Permissions of a machine that has joined: what its workers need, and the question for the next JWT. */
export function joinedPermissions({ instance, pool, roles }: JoinedMachine): Partial<User> {
  const permissions = workerPermissions(instance, roles);
  const asked = joinPermissions({ pool, roles, asker: instance }).pub?.allow ?? [];
  return {
    ...permissions,
    pub: { allow: [...(permissions.pub?.allow ?? []), ...asked] },
    sub: { allow: [...(permissions.sub?.allow ?? []), renewSubject, leaveNowSubject(instance)] },
  };
}

/** Permissions of a token, which can only ask to join, and of any machine that joins or leaves. */
export function joinPermissions(from: Parameters<typeof joinSubject>[0]): Partial<User> {
  return {
    payload: 16 * 1024,
    subs: 10,
    pub: { allow: [joinSubject(from), leaveSubject(from)] },
    sub: { allow: [`${inboxOf({ instance: from.asker })}.>`] },
  };
}

/**
 * Takes messages from the role's queues, and acks them. From 2.15 on the server may put its domain and account into
 * acks.
 */
function queueSubjects(role: Role): string[] {
  const stream = jobStream(role);
  return [
    `${workerApiPrefix}.CONSUMER.INFO.${stream}.*`,
    `${workerApiPrefix}.CONSUMER.MSG.NEXT.${stream}.*`,
    `$JS.ACK.${stream}.>`,
    `$JS.ACK.*.*.${stream}.>`,
  ];
}
