/** The runs that this stack drives: noted in its home or, for a stack of several machines, in its store. */
import { knownStores } from '../store/places.ts';
import { HomeRuns } from './driven-in-home.ts';
import { StoreRuns } from './driven-in-store.ts';
import type { DrivenRuns } from './driven-run.ts';
import { instanceName } from './identity.ts';
import { sharedStack } from './state.ts';

const known = new Map<string, DrivenRuns>();

/** One object for each home, because it remembers what it has read. */
export function drivenRuns(home: string): DrivenRuns {
  const shared = sharedStack(home);
  const name = JSON.stringify([home, shared]);
  const runs = known.get(name) ?? (shared ? new StoreRuns(shared, instanceName(home)) : new HomeRuns(home));
  known.set(name, runs);
  return runs;
}

/**
 * True for a store that a command of this home has named, and for the store of a run that this stack drives. Throws as
 * `all`.
 */
export async function servesStore(home: string, url: string): Promise<boolean> {
  if (knownStores(home).some((one) => one.url === url)) return true;
  return (await drivenRuns(home).all()).some(({ store }) => store === url);
}
