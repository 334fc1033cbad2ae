/** The trainers of a stack, as they describe themselves. */
import type { Presence } from '../../core/wire/messages.ts';
import { connectNats } from '../../infra/nats/connection.ts';
import { listWorkers } from '../../infra/nats/jobs/presence.ts';
import type { StackInfo } from '../../infra/stack/index.ts';
import { poll } from '../../infra/poll.ts';

/** Ready workers announce themselves within this time. */
const presenceMs = 10_000;

/** Resolves when a trainer is ready, or with an empty list when that takes too long. */
export async function readyTrainers(stack: StackInfo): Promise<readonly Presence[]> {
  const nc = await connectNats(stack, 'cli');
  const look = async () => {
    const workers = await listWorkers(nc);
    const ready = workers.filter(({ roles, state }) => roles.includes('trainer') && state !== 'starting');
    return ready.length > 0 && ready;
  };
  try {
    return (await poll(look, { everyMs: 100, timeoutMs: presenceMs })) || [];
  } finally {
    await nc.close();
  }
}
