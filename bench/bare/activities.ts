/**
 * Activities that do only what every iteration must do: send a job and wait for its result, and create durable files.
 */
import { jetstream } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/nats-core';
import { durableCreate } from './creates.ts';
import { activitiesPerIteration, bareSubject, createsPerIteration, doneSubject, jobsPerIteration } from './names.ts';

export interface BareActivities {
  stage(index: number): Promise<void>;
}

export interface BareLoopClock {
  /** performance.now() when each iteration's first activity began. */
  readonly startsMs: number[];
}

export function bareActivities(nc: NatsConnection, folder: string, clock: BareLoopClock): BareActivities {
  const js = jetstream(nc);
  let made = 0;
  const job = async () => {
    const name = String(made++);
    const done = nc.subscribe(doneSubject(name), { max: 1 });
    await js.publish(bareSubject, name);
    for await (const _ of done) break;
  };
  return {
    async stage(index) {
      if (index === 0) clock.startsMs.push(performance.now());
      if (index < jobsPerIteration) await job();
      for (let i = index; i < createsPerIteration; i += activitiesPerIteration)
        await durableCreate(folder, `${made++}`);
    },
  };
}
