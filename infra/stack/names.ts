/**
 * The name of a stack in a store. A term names the stack that drives a run, so two stacks of one name would take each
 * other's runs for their own. The first stack that uses a name in a store claims it there, with its random id.
 */
import { hostname } from 'node:os';
import { InvalidInputError, RetryableError, TerminalError } from '../../core/errors.ts';
import type { Store } from '../../core/ports/store.ts';
import { keys } from '../../core/records/keys.ts';
import { recordFormat, stackClaim } from '../../core/records/schema.ts';
import type { StackClaim } from '../../core/records/schema.ts';
import { newestOf } from '../../log/objects/dense.ts';
import { ensureFences } from '../store/fencing.ts';
import { openStore } from '../store/open.ts';
import { isPaidByRequest } from '../store/places.ts';
import { encodeRecord, needRecord } from '../../log/objects/records.ts';
import { stackIdentity } from './identity.ts';
import { readConfig, sharedStack } from './state.ts';
import { chooseServers } from './up.ts';

type Claimed = Pick<StackClaim, 'name' | 'id' | 'temporal'>;

/**
 * The stack as stack.yaml describes it, before anything else reads the stack's name or its runs. A stack of several
 * machines claims its name in its store. Throws as `chooseServers` and `claimName`.
 */
export async function chooseStack(home: string, takeOver = false): Promise<void> {
  await chooseServers(home);
  const shared = sharedStack(home);
  if (shared === undefined) return;
  const store = await openStore(shared.store);
  await ensureFences(home, store);
  await claimName(home, store, takeOver);
}

/**
 * Claims the stack's name in the store. Call this before the stack drives a run in the store. Throws TerminalError
 * `Conflict` when another stack has the name, or when the stack uses another server of Temporal; not with `takeOver`:
 * the other one then stops driving its runs in this store.
 */
export async function claimName(home: string, store: Store, takeOver = false): Promise<void> {
  requireShared(home, store);
  const own = ownClaim(home);
  for (let attempt = 0; attempt < 20; attempt++) {
    const last = await newestClaim(store, own.name);
    if (last !== undefined && !takeOver) refuseOther(last, own, store);
    if (last !== undefined && isSame(last, own)) return;
    const record: StackClaim = {
      format: recordFormat,
      ...own,
      n: (last?.n ?? 0) + 1,
      machine: hostname(),
      at: new Date().toISOString(),
    };
    if ((await store.create(keys.stackClaim(own.name, record.n), encodeRecord(record))) === 'created') return;
  }
  throw new RetryableError('NameContention', `too many commands claim the name ${own.name} at the same time`);
}

/** Another stack's claim of this stack's name; undefined where this stack has it, or nobody. */
export async function nameTaken(home: string, store: Store): Promise<StackClaim | undefined> {
  const own = stackIdentity(home);
  const last = await newestClaim(store, own.name);
  return last === undefined || last.id === own.id ? undefined : last;
}

function ownClaim(home: string): Claimed {
  const server = readConfig(home)?.servers?.temporal;
  return {
    ...stackIdentity(home),
    ...(server && { temporal: { address: server.address, namespace: server.namespace } }),
  };
}

async function newestClaim(store: Store, name: string): Promise<StackClaim | undefined> {
  const n = await newestOf(store, (index) => keys.stackClaim(name, index));
  return n === 0 ? undefined : (await needRecord(store, keys.stackClaim(name, n), stackClaim)).record;
}

const serverText = ({ temporal }: Pick<StackClaim, 'temporal'>): string =>
  temporal === undefined ? 'its own Temporal' : `Temporal at ${temporal.address}, namespace ${temporal.namespace}`;

const isSame = (a: Claimed, b: Claimed): boolean => a.id === b.id && serverText(a) === serverText(b);

/** A stack may go over to its own server and back: its home runs one at a time. */
function refuseOther(last: StackClaim, own: Claimed, store: Store): void {
  const isOther = last.id !== own.id;
  if (!isOther && (last.temporal === undefined || own.temporal === undefined || isSame(last, own))) return;
  const since = `${last.machine}, since ${last.at}, with ${serverText(last)}`;
  throw new TerminalError(
    'Conflict',
    isOther
      ? `in ${store.url} another stack has the name ${own.name}: ${since}`
      : `in ${store.url} the stack ${own.name} works with another Temporal (${since}); stack.yaml names ${serverText(own)}`,
    {
      where: keys.stackClaim(own.name, last.n),
      hint: 'petrel up --take-over, if that stack is gone for good or must stop',
    },
  );
}

/** A folder of one machine cannot be reached from the stack's other machines. */
function requireShared(home: string, store: Store): void {
  const shared = sharedStack(home);
  if (shared === undefined || !isPaidByRequest(store.url) === !isPaidByRequest(shared.store)) return;
  throw new InvalidInputError(
    `expected a store that each control machine of the stack ${shared.name} reaches, got ${store.url}`,
    { where: 'store', hint: `store: ${shared.store}` },
  );
}
