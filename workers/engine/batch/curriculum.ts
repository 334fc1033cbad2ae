/** What a curriculum remembers after a batch: the mean of each sampled group (core/rl/curriculum.ts). */
import { at } from '../../../core/at.ts';
import type { Counters } from '../../../core/records/schema.ts';
import { curriculumAfter } from '../../../core/rl/curriculum.ts';
import type { GroupResult } from '../../../core/rl/curriculum.ts';
import { curriculumBlob, decodeCurriculum, encodeCurriculum } from '../../../core/wire/curriculum.ts';
import type { AdvantageInput } from '../../../core/wire/jobs/index.ts';
import { numbersNamed } from '../../../core/wire/score-table.ts';
import { getJsonBlob, putJsonBlob } from '../../../log/objects/blobs.ts';
import type { Store } from '../../../core/ports/store.ts';
import { groupsOf } from '../../../models/trajectories.ts';
import type { ScoredDraws } from '../samples/samples.ts';

/** Stores the state after the batch; the controllers that name it. Nothing without a curriculum. */
export async function curriculumOfBatch(
  store: Store,
  runId: string,
  input: AdvantageInput,
  parts: readonly ScoredDraws[],
): Promise<Counters['controllers']> {
  const { curriculum } = input.algorithm;
  if (curriculum === undefined) return {};
  const blob = curriculumBlob(input.before);
  const before = blob === undefined ? new Map() : decodeCurriculum(await getJsonBlob(store, runId, blob), blob);
  const groups = parts.flatMap((part) => groupResults(part, curriculum.metric, input.inputs.trainRows));
  const state = encodeCurriculum(curriculumAfter(before, groups), input);
  return { curriculum: { blob: await putJsonBlob(store, runId, state) } };
}

export function groupResults({ trajectories, scores }: ScoredDraws, metric: string, rows: number): GroupResult[] {
  const { draw_S, row_S } = trajectories;
  const values = numbersNamed(scores, metric);
  return groupsOf(trajectories).map((members) => ({
    row: at(row_S, at(members, 0)),
    epoch: Math.floor(at(draw_S, at(members, 0)) / rows),
    values: members.map((b) => at(values, b)),
  }));
}
