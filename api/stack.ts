/** The local stack: its servers, its control process and its workers. */
import { fullPlaces } from '../infra/stack/admission.ts';
import {
  chooseStack,
  claimName,
  defaultPools,
  ensureStack,
  instanceName,
  nameTaken,
  parseListenAddress,
  readStack,
  requireSetUp,
  stackName,
  stopStack,
} from '../infra/stack/index.ts';
import type { StackInfo } from '../infra/stack/index.ts';
import { isFull } from '../log/objects/free-space.ts';
import type { ApiContext } from './context.ts';
import { openKnownStores } from './stores/find.ts';
import type { FoundRun } from './stores/find.ts';

export { instanceName, type StackInfo, readStack, stackName, stopStack };

export interface WantedStack {
  /** How many processes each pool is to have. */
  readonly workers?: number | undefined;
  /** The address at which NATS listens for other machines, as `parseListenAddress` reads it; `off`: no address. */
  readonly listen?: string | undefined;
  /** Takes the stack's name from another stack. */
  readonly takeOver?: boolean;
}

/** Brings the stack up, or leaves the one that runs as it is where nothing else is wanted. */
export async function startStack(
  { home, notice }: ApiContext,
  { workers, listen, takeOver = false }: WantedStack = {},
): Promise<StackInfo> {
  const pools = workers === undefined ? undefined : defaultPools.map((pool) => ({ ...pool, count: workers }));
  requireSetUp(home);
  await chooseStack(home, takeOver);
  if (takeOver) await takeNames(home, notice);
  const address = listen === undefined || listen === 'off' ? listen : parseListenAddress(listen);
  return ensureStack({
    home,
    ...(pools && { workers: pools }),
    ...(address && { listen: address }),
    onProgress: notice,
  });
}

/** Takes the name in every other store where a stack has claimed it. */
async function takeNames(home: string, notice: ApiContext['notice']): Promise<void> {
  for (const store of await openKnownStores(home, notice)) {
    const taken = await nameTaken(home, store);
    if (taken === undefined) continue;
    await claimName(home, store, true);
    notice(`${taken.name} is this stack's name in ${store.url} now; before, it was that of ${taken.machine}`);
  }
}

/** What is too full for new work, a sentence each: of one run, or of every store that this machine knows. */
export async function fullDisks({ home }: ApiContext, run?: FoundRun): Promise<string[]> {
  const stores = run === undefined ? await openKnownStores(home, () => {}) : [run.log.store];
  return (await fullPlaces(stores, home)).map(({ message }) => message);
}

/** The error that names the full disk, for an error of the system that only says that there is no room. */
export async function namingFullDisk(error: unknown, home: string): Promise<unknown> {
  return isFull(error) ? ((await fullPlaces([], home))[0] ?? error) : error;
}
