/** How each component of a run is trained, by its name in records. */
import type { Components } from '../../../core/records/components.ts';
import { runKinds } from '../../../core/run-kinds.ts';
import type { AdvantageInput, TrainedBeside } from '../../../core/wire/jobs/index.ts';

export function trainedSettings({ kind, algorithm }: AdvantageInput): Components<TrainedBeside> {
  const { loss, optimizer, schedule, critic, logZ, rewardModel } = algorithm;
  return {
    [runKinds[kind].trains]: { loss, optimizer, schedule },
    ...(critic && { critic }),
    ...(logZ && { logZ }),
    ...(rewardModel && { rewardModel }),
  };
}
