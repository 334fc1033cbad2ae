/** How each component of a run is trained, by its name in records. */
import type { Components } from '../../core/records/components.ts';
import type { AlgorithmSettings, TrainedBeside } from '../../core/wire/jobs.ts';

export function trainedSettings({
  loss,
  optimizer,
  schedule,
  critic,
  logZ,
  rewardModel,
}: AlgorithmSettings): Components<TrainedBeside> {
  return {
    actor: { loss, optimizer, schedule },
    ...(critic && { critic }),
    ...(logZ && { logZ }),
    ...(rewardModel && { rewardModel }),
  };
}
