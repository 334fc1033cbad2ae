/** Can the workers of this stack give a run's bits? Asked when a run comes to a stack that did not begin it. */
import { TerminalError } from '../../core/errors.ts';
import type { NumericProfile } from '../../core/records/schema.ts';
import { timings } from '../../core/wire/messages.ts';
import type { Presence } from '../../core/wire/messages.ts';
import { listWorkers } from '../../infra/nats/presence.ts';
import { connectNats } from '../../infra/nats/connection.ts';
import type { StackInfo } from '../../infra/stack/index.ts';
import { poll } from '../../infra/wait.ts';

/** Workers that are ready say so within this time. */
const presenceMs = 10_000;

/**
 * Throws TerminalError `CannotReproduce` when the run is deterministic and no trainer here has its engine. Without any
 * trainer nothing is refused: the run waits for one, visibly.
 */
export async function checkProfile(runId: string, profile: NumericProfile, stack: StackInfo): Promise<void> {
  if (!profile.deterministic) return;
  const nc = await connectNats(stack, 'cli');
  try {
    const trainers = () =>
      listWorkers(nc, timings.local).then((workers) =>
        workers.filter(({ roles, state }) => roles.includes('trainer') && state !== 'starting'),
      );
    const found = await poll(
      async () => {
        const there = await trainers();
        return there.length > 0 && there;
      },
      { everyMs: 100, timeoutMs: presenceMs },
    );
    if (found) refuseProfile(runId, profile, found);
  } finally {
    await nc.close();
  }
}

export function refuseProfile(
  runId: string,
  profile: NumericProfile,
  trainers: readonly Pick<Presence, 'profiles' | 'worker'>[],
): void {
  if (trainers.length === 0 || trainers.some(({ profiles }) => profiles.includes(profile.id))) return;
  const here =
    [...new Set(trainers.flatMap(({ profiles }) => profiles))].filter((id) => id !== 'any').join(', ') || 'none';
  throw new TerminalError(
    'CannotReproduce',
    `${runId} is deterministic with the numeric profile ${profile.id} (${profile.compute}, engine ${profile.engine.slice(0, 12)}); the trainers here have ${here}`,
    {
      hint: `Use the petrel build that began it; or petrel fork ${runId} begins a run of its own with this engine`,
      where: runId,
    },
  );
}
