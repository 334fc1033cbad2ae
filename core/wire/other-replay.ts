/**
 * What a trainer answers when it has computed committed iterations of a run again and they came out otherwise. In a run
 * that is not deterministic this is expected on another machine. The answer names the iteration of the checkpoint that
 * the trainer could load.
 */
import { keys } from '../records/keys.ts';

export const otherReplayCode = 'OtherReplay';

/**
 * What a standby of such a run answers when it must lead and has other bits than the trainer that led. `where` is the key of the
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
