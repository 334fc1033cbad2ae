/**
 * What a trainer answers instead of a result, in a run that is not deterministic (activities/term/trainer-terms.ts).
 */
import { keys } from '../records/keys.ts';

/**
 * It has computed committed iterations again and they came out otherwise, as is expected on another machine. `where`
 * names the iteration of the checkpoint that it could load.
 */
export const otherReplayCode = 'OtherReplay';

/**
 * A standby of such a run must lead, and the last bits of its state are not those of the log. `where` is the key of the
 * result that names its state.
 */
export const standbyLeadsCode = 'StandbyLeads';

/** Names a checkpoint, or the base as iteration 0, in an error's `where`. */
export const checkpointPlace = (runId: string, iteration: number): string => `${keys.checkpoints(runId)}${iteration}`;

/** The iteration that such a place names; undefined for another text. */
export function checkpointAt(runId: string, place: string): number | undefined {
  const [folder, iteration] = [
    place.slice(0, keys.checkpoints(runId).length),
    place.slice(keys.checkpoints(runId).length),
  ];
  return folder === keys.checkpoints(runId) && /^\d+$/.test(iteration) ? Number(iteration) : undefined;
}
