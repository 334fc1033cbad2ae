/** Random faults of a training: at an event of the run, by its own log, something is killed, and must have been alive. */
import type { FaultFacts, FaultPoint } from '../../infra/faults/index.ts';
import { readStack } from '../../infra/stack/index.ts';
import type { Alone } from '../one-at-a-time.ts';
import type { Bed } from '../recovery/bed.ts';
import type { Seeded } from '../recovery/seeded.ts';
import type { Training } from './trainings.ts';

/** What is killed. Servers without their files are in the recovery suite; a soak looks for what builds up. */
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

/** The moment at which it is done: a process of the run comes to a point. */
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

/** None to three, each in an iteration of its own. */
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

/** Arms all of them before the run is driven, and does each when its moment comes. Resolves with those that were done. */
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
      bed.injector.disarm(id); // the run was over before its moment came: a job that another run's worker had done already
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

/** A living one; which of them holds the run's job is nobody's business here. */
const workersOf = (bed: Bed): string[] =>
  (readStack(bed.loop.home)?.children ?? [])
    .filter(({ kind, state }) => kind === 'worker' && state === 'ready')
    .map(({ name }) => name);

/** Two workers that do everything, so that two runs can train side by side. */
export const soakPools = [{ name: 'local', count: 2, roles: ['trainer', 'rollout', 'reward'], threads: 1 }] as const;
