/** The local stack: its servers, its control process and its workers. */
import { fullPlaces } from '../infra/stack/admission.ts';
import { defaultPools, ensureStack, readStack, stackName, stopStack } from '../infra/stack/index.ts';
import type { StackInfo } from '../infra/stack/index.ts';
import { isFull } from '../infra/store/free-space.ts';
import type { ApiContext } from './context.ts';
import { openKnownStores } from './runs/find.ts';
import type { FoundRun } from './runs/find.ts';

export { type StackInfo, readStack, stackName, stopStack };

/** Brings the stack up, or leaves the one that runs as it is. `workers`: how many processes each pool is to have. */
export function bringUp({ home, notice }: ApiContext, workers?: number): Promise<StackInfo> {
  const pools = workers === undefined ? undefined : defaultPools.map((pool) => ({ ...pool, count: workers }));
  return ensureStack({ home, ...(pools && { workers: pools }), onProgress: notice });
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
