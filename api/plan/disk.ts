/**
 * Room that a run takes in its store: checkpoints of 12 bytes for each parameter that is trained, and the base model.
 */
import { trainedComponents } from '../../core/recipe/index.ts';
import type { Recipe } from '../../core/recipe/index.ts';
import { fewestCheckpoints } from '../../log/retention/floor.ts';

export interface DiskUse {
  /** Bytes of one checkpoint. */
  readonly checkpointBytes: number;
  /** Most checkpoints that are there at once; null: only known with the length of the run. */
  readonly checkpoints: number | null;
  /** The base model's weights. */
  readonly modelBytes: number;
  readonly bytes: number | null;
  /** Free where the store is; null: it is no folder. */
  readonly freeBytes: number | null;
}

/**
 * `parameters` of the model; `made`: checkpoints that the whole run writes; null: not known. `freeBytes` of the store,
 * `modelBytes` of its base.
 */
export function diskOf(
  recipe: Recipe,
  parameters: number,
  made: number | null,
  room: Pick<DiskUse, 'modelBytes' | 'freeBytes'>,
): DiskUse {
  const checkpointBytes = 12 * parameters * trainedComponents(recipe).length;
  const keep = recipe.trainer.max_actor_ckpt_to_keep;
  // The oldest one goes after the newest is there, and the best one may be older than all of them.
  const beside = recipe.trainer.best_metric === null ? 1 : 2;
  const kept = keep === null ? null : Math.max(keep, fewestCheckpoints) + beside;
  const most = kept === null ? made : Math.min(made ?? Number.POSITIVE_INFINITY, kept);
  return {
    ...room,
    checkpointBytes,
    checkpoints: most,
    bytes: most === null ? null : room.modelBytes + most * checkpointBytes,
  };
}
