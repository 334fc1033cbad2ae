/**
 * Runs that this stack drives and whose store is missing. Its folder is gone, or has none of them: it may be the mount
 * point of a disk that is not mounted.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { TerminalError } from '../../core/errors.ts';
import { runNameOf } from '../../core/ids.ts';
import type { Store } from '../../core/ports/store.ts';
import { keys } from '../../core/records/keys.ts';
import { drivenRuns } from '../../infra/stack/driven-runs.ts';
import type { DrivenRun } from '../../infra/stack/driven-run.ts';
import { openStore, storeUrl } from '../../infra/store/open.ts';
import { defaultStore, isInUse, isPaidByRequest } from '../../infra/store/places.ts';

/** A run's first record remains even when the run is deleted. A bucket reports by itself that it is gone. */
export async function runsAway(home: string): Promise<DrivenRun[]> {
  return (await drivenRuns(home).all()).filter(
    ({ runId, store }) => !isPaidByRequest(store) && !existsSync(join(fileURLToPath(store), keys.run(runId))),
  );
}

/** `the store file:///… is gone; a-1, a-2 wait until it is back`: one line for each store. */
export function awayTexts(away: readonly DrivenRun[]): string[] {
  return [...new Set(away.map(({ store }) => store))].map((store) => {
    const runs = away.filter((run) => run.store === store).map(({ runId }) => runId);
    const [are, wait, they] = runs.length === 1 ? ['is', 'waits', 'it is'] : ['are', 'wait', 'they are'];
    if (isInUse(store)) return `${runs.join(', ')} ${are} not in the store ${store}, and ${wait} until ${they} back`;
    return `the store ${store} is gone; ${runs.join(', ')} ${wait} until it is back`;
  });
}

/** The error text for a word that names such a run. */
export async function awayError(word: string, home: string): Promise<TerminalError | undefined> {
  const away = (await runsAway(home)).find(({ runId }) => runId === word || runNameOf(runId) === word);
  return (
    away &&
    new TerminalError(
      'StoreGone',
      `${away.runId} waits: ${isInUse(away.store) ? `it is not in the store ${away.store}` : `its store ${away.store} is gone`}`,
      { hint: awayHint(home) },
    )
  );
}

/**
 * The store of a recipe, which its first run creates. Throws TerminalError `StoreGone` when it existed before and is
 * missing: creating it again, empty, at the mount point of its disk would make all other runs of that store take the
 * new folder for it.
 */
export async function openStoreForNew(where: string | null, home: string): Promise<Store> {
  const url = storeUrl(where ?? defaultStore(home));
  const [text] = isInUse(url) ? [] : awayTexts((await runsAway(home)).filter(({ store }) => store === url));
  if (text !== undefined) throw new TerminalError('StoreGone', text, { hint: awayHint(home) });
  return openStore(url);
}

export const awayHint = (home: string): string =>
  `mount its disk, or move the folder back: they then continue; to forget a run whose store is lost, remove ${drivenRuns(home).place}`;
