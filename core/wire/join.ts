/**
 * How a machine joins a stack. Its file names the stack and holds a credential that can ask one question. The answer is
 * a JWT for the machine's own key, which permits what a worker of the pool needs, and the build that it must run.
 */
import { z } from 'zod';
import { engineEnvironments } from '../engines.ts';
import { roles } from '../roles.ts';
import type { Role } from '../roles.ts';
import type { MachineFacts } from '../machine-needs.ts';
import { wireVersion } from './messages.ts';
import type { Presence } from './messages.ts';

const version = z.literal(wireVersion);
const short = z.string().max(200);

export const poolName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]*$/, 'a pool name has small letters, digits and -')
  .max(40);
/** Roles of a pool that names none. A trainer is trusted with the state of a run, so a pool must ask for it. */
export const usualRoles: readonly Role[] = ['rollout', 'reward'];

/** The file of `petrel fleet token`. It is a secret until `expires`. */
export const joinFile = z.object({
  v: version,
  /** Name of the stack, for people. */
  stack: z.string(),
  nats: z.object({ url: z.string(), ca: z.string() }),
  credential: z.object({ key: z.string(), jwt: z.string() }),
  /** Id of the credential, which is a word of its subjects. */
  id: z.string(),
  pool: poolName,
  roles: z.array(z.enum(roles)).min(1),
  /** Environments that the machine installs before it takes jobs, for its GPUs if it has any. */
  engines: z.array(z.enum(engineEnvironments)).min(1).optional(),
  /** The store whose runs the pool serves. */
  store: z.string(),
  /** ISO time. */
  expires: z.string(),
  /** Nonce of a machine that was bought: only the instances of this launch may join with it, each once. */
  nonce: z.string().optional(),
  /** Such a machine ends itself when it cannot reach the stack for so long. */
  lonelySeconds: z.number().positive().optional(),
  /** How such a machine runs scorers that are not petrel's own. Absent: in a sandbox only. */
  ownScorers: z.literal('open').optional(),
});
export type JoinFile = Readonly<z.infer<typeof joinFile>>;

/** Machine → control (request): to join, and again while it works. */
export const joinRequest = z.object({
  v: version,
  /** Public key of the machine. */
  key: z.string().regex(/^U[A-Z2-7]{55}$/),
  host: short,
  store: z.string(),
  /** Id of a machine that was bought, with the token of its launch. */
  bought: z.object({ id: short, nonce: short }).optional(),
});
export type JoinRequest = z.infer<typeof joinRequest>;

export const joinReply = z.discriminatedUnion('answer', [
  z.object({
    v: version,
    answer: z.literal('welcome'),
    instance: z.string(),
    jwt: z.string(),
    /** Digest of the build's list of files, in the store. */
    build: z.string(),
    /** Instance of the control machine. */
    stackInstance: z.string(),
    /** The stack's name in the records of its runs. */
    stackName: z.string(),
    /** The control machine's clock, ms. */
    now: z.number(),
  }),
  z.object({ v: version, answer: z.literal('refused'), code: z.string(), message: z.string(), hint: z.string() }),
]);
export type JoinReply = z.infer<typeof joinReply>;

/** Machine → control: it leaves, and why; `petrel status` shows it. */
export const leaveNote = z.object({
  v: version,
  host: short,
  code: z.string().max(60),
  message: z.string().max(2_000),
});
export type LeaveNote = z.infer<typeof leaveNote>;

/**
 * Control → joined machines: a control process has started, perhaps of another build. They ask for their next JWT now,
 * which says so.
 */
export const renewSubject = 'join-again';

/** Id of the token of a launch of a pool. */
export const launchToken = (n: number): string => `launch-${n}`;
/** The launch of such a token; undefined for another one. */
export const launchOfToken = (id: string): number | undefined => {
  const n = /^launch-(\d+)$/.exec(id)?.[1];
  return n === undefined ? undefined : Number(n);
};

/** Control → a machine that has joined: end your jobs and leave. */
export const leaveNowSubject = (instance: string) => `leave-now.${instance}`;

/** What a machine is, as words of a subject. `asker`: id of a token, or the machine's instance once it has joined. */
interface Joining {
  readonly pool: string;
  readonly roles: readonly Role[];
  readonly asker: string;
}

const words = ({ pool, roles: of, asker }: Joining) =>
  `${pool}.${roles.filter((role) => of.includes(role)).join('-')}.${asker}`;
export const joinSubject = (from: Joining) => `join.${words(from)}`;
export const leaveSubject = (from: Joining) => `leave.${words(from)}`;
export const joinsSubject = 'join.*.*.*';
export const leavesSubject = 'leave.*.*.*';

/** The server lets a machine send only what its credential says, so the subject can be believed. */
export function joiningOf(subject: string): Joining & { readonly roles: Role[] } {
  const [, pool = '', rolesWord = '', asker = ''] = subject.split('.');
  const named = rolesWord.split('-');
  return { pool, roles: roles.filter((role) => named.includes(role)), asker };
}

/** Name of a connection that asks to join; the server tells it when it refuses the credential. */
export const joiningName = (pool: string, host: string) => `join ${pool} ${host}`;
export function parseJoiningName(name: string): { readonly pool: string; readonly host: string } | undefined {
  const [, pool, host] = /^join ([a-z0-9-]+) (\S{1,200})$/.exec(name) ?? [];
  return pool === undefined || host === undefined ? undefined : { pool, host };
}

/** The pool in the name of a machine that has joined: `<pool>-<12 hexadecimal digits>`. */
export const poolOfInstance = (instance: string): string => instance.replace(/-[0-9a-f]{12}$/, '');

/** A machine that has joined cannot pass for one of another pool; workers of the control machine say their own. */
export function poolOfWorker({
  instance,
  pool,
}: {
  readonly instance: string;
  readonly pool?: string | undefined;
}): string {
  const joined = poolOfInstance(instance);
  return joined === instance ? (pool ?? instance) : joined;
}

/** What the machine of a worker offers to jobs. */
export const machineOf = (
  entry: Pick<Presence, 'instance'> & Partial<Pick<Presence, 'pool' | 'gpus' | 'roundTripMs'>>,
): MachineFacts => ({ pool: poolOfWorker(entry), gpus: entry.gpus ?? [], roundTripMs: entry.roundTripMs });
