/**
 * Identity of a worker. The instance names its machine and the worker's name its place there, so equal names on two
 * machines do not disturb each other. The incarnation names the process: the next one at the same place has another.
 *
 * Every message of a worker has its instance and name as the last two words of the subject. The server lets a machine
 * of a fleet publish only under its own instance, so nobody can speak for the workers of another machine. What a
 * message says about its sender is never read from its content.
 */

export interface WorkerPlace {
  readonly instance: string;
  readonly worker: string;
}

export interface WorkerIdentity extends WorkerPlace {
  readonly incarnation: string;
}

/** The control process among the senders of messages. No worker has this name: theirs end with a number. */
export const controlName = 'control';

/** The end of a subject, and the key of the worker in the presence bucket. */
export const placeWords = ({ instance, worker }: WorkerPlace): string => `${instance}.${worker}`;

/** The place in subscriptions that means the messages of every worker. */
export const anyPlace = '*.*';

/** The sender of a message with this subject. */
export function senderOf(subject: string): WorkerPlace {
  const [worker = '', instance = ''] = subject.split('.').reverse();
  return { instance, worker };
}

/**
 * Answers to requests of the machine's workers come below this subject. The server lets a machine hear its own inbox
 * only.
 */
export const inboxOf = ({ instance }: Pick<WorkerPlace, 'instance'>): string => `_INBOX.${instance}`;

/** Names the process: in proofs of results, and as the name of its connection. */
export const identityText = (identity: WorkerIdentity): string => `${placeWords(identity)}.${identity.incarnation}`;

/** The inverse of `identityText`; undefined for other text. */
export function parseIdentity(text: string): WorkerIdentity | undefined {
  const [instance, worker, incarnation, ...rest] = text.split('.');
  if (!instance || !worker || !incarnation || rest.length > 0) return undefined;
  return { instance, worker, incarnation };
}

/**
 * The name for users: `local-1` on the machine of the reader, whose instance is `own`, and `i-0a1b/sampler-1`
 * elsewhere.
 */
export const shownName = ({ instance, worker }: WorkerPlace, own: string): string =>
  instance === own ? worker : `${instance}/${worker}`;
