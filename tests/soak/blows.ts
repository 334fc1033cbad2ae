/** Random faults of a run: when a process logs a given event, a process is killed that must have been alive. */
import type { FaultFacts, FaultPoint } from '../../log/faults/index.ts';
import { readStack } from '../../infra/stack/index.ts';
import type { Alone } from '../one-at-a-time.ts';
import type { Bed } from '../recovery/bed.ts';
import type { Seeded } from '../recovery/seeded.ts';
import type { Training } from './trainings.ts';

/** What is killed. The recovery suite tests servers that lose their files; a soak looks for leaks. */
export const victims = [
  'worker',
  'control',
  'nats',
  'nats wiped',
  'temporal',
  'supervisor',
  'worker + control',
  'worker + nats',
  'everything',
] as const;
export type Victim = (typeof victims)[number];

/** The moment of the fault: a process of the run reaches a point. */
interface Moment {
  readonly title: string;
  readonly point: FaultPoint;
  readonly facts: FaultFacts;
}

export interface Blow {
  readonly victim: Victim;
  readonly iteration: number;
  readonly moment: Moment;
}

/** None to three faults, each in another iteration. */
export function chooseBlows({ iterations, kind }: Training, seeded: Seeded): readonly Blow[] {
  const order = seeded.shuffled(Array.from({ length: iterations }, (_, i) => i + 1));
  return order
    .slice(0, seeded.below(4))
    .sort((a, b) => a - b)
    .map((iteration) => ({ victim: seeded.pick(victims), iteration, moment: seeded.pick(momentsOf(iteration, kind)) }));
}

function momentsOf(iteration: number, kind: 'rl' | 'sft'): readonly Moment[] {
  const job = (stage: string): Moment => ({
    title: `${stage} job`,
    point: 'job.begin',
    facts: { stage, iteration: iteration - 1 },
  });
  const decided = (record: string): Moment => ({
    title: `${record} record`,
    point: 'decide.after',
    facts: { kind: record, iteration },
  });
  return [
    job('advantage'),
    job('update'),
    decided('batch'),
    decided('update'),
    ...(kind === 'rl' ? [job('rollout'), job('reward')] : []),
  ];
}

/** Arms all faults before the run is driven, and carries each out at its moment. Resolves with those that happened. */
export async function strike(
  bed: Bed,
  runId: string,
  blows: readonly Blow[],
  over: AbortSignal,
  alone: Alone,
): Promise<Blow[]> {
  const done = blows.map(async (blow, i) => {
    const id = `${runId}-soak-${i + 1}`;
    bed.injector.arm({ id, point: blow.moment.point, facts: { ...blow.moment.facts, runId }, action: 'note' });
    try {
      await bed.injector.fired(id, over);
    } catch {
      bed.injector.disarm(id); // the run ended before the moment came: another run's worker had already done the job
      return undefined;
    }
    await alone(() => hit(bed, blow.victim));
    return blow;
  });
  return (await Promise.all(done)).filter((blow) => blow !== undefined);
}

async function hit(bed: Bed, victim: Victim): Promise<void> {
  const { injector } = bed;
  if (victim === 'everything') {
    await injector.killEverything();
    await bed.loop.up(soakPools); // one `petrel up`
    return;
  }
  if (victim === 'nats wiped') return injector.replaceState('nats', undefined);
  const names = victim.split(' + ').map((name) => (name === 'worker' ? (workersOf(bed)[0] ?? 'local-1') : name));
  await injector.kill(await Promise.all(names.map((name) => injector.victim(name))));
}

/** Any living one, whether or not it holds the run's job. */
const workersOf = (bed: Bed): string[] =>
  (readStack(bed.loop.home)?.children ?? [])
    .filter(({ kind, state }) => kind === 'worker' && state === 'ready')
    .map(({ name }) => name);

/** Two workers with all roles, so that two runs can train in parallel. */
export const soakPools = [{ name: 'local', count: 2, roles: ['trainer', 'rollout', 'reward'], threads: 1 }] as const;
