/** The plan of a seed of faults of machines: what happens, while the machine does what, in which iteration. */
import type { FaultPoint } from '../../log/faults/index.ts';
import { Seeded } from './seeded.ts';

/**
 * What happens, and within how many seconds the lost job must begin on another machine, where one is there that
 * notices.
 */
const withinS = {
  killed: 3,
  'cut off and back': 15,
  /** Seconds until the server has closed its connection. */
  'cut off for long and back': 15,
  'cut off for good': 15,
  'two killed at once': undefined,
  'control machine': undefined,
  /** The worker keeps its job. */
  'one of three NATS servers': undefined,
} as const;
export type MachineFault = keyof typeof withinS;
export const machineFaults = Object.keys(withinS) as readonly MachineFault[];

interface Place {
  readonly stage: 'rollout' | 'reward';
  readonly point: FaultPoint;
  /** The job has no result yet: another machine must do it again. */
  readonly again: boolean;
}

/** What the machine is doing. `job.progress` of a rollout: it has decoded tokens. */
const places: readonly Place[] = [
  { stage: 'rollout', point: 'job.begin', again: true },
  { stage: 'rollout', point: 'job.progress', again: true },
  { stage: 'rollout', point: 'result.before', again: true },
  { stage: 'rollout', point: 'result.after', again: false },
  { stage: 'rollout', point: 'ack.before', again: false },
  { stage: 'reward', point: 'job.begin', again: true },
  { stage: 'reward', point: 'result.before', again: true },
];

export interface MachinePlan {
  readonly seed: number;
  readonly fault: MachineFault;
  readonly place: Place;
  /** Committed iterations before it is armed. */
  readonly after: number;
}

/** The stack's NATS must be a cluster. */
export const needsCluster = ({ fault }: MachinePlan): boolean => fault === 'one of three NATS servers';

/** The faults take turns, and the places are drawn from the seed. */
export function machinePlan(seed: number): MachinePlan {
  const random = new Seeded(seed);
  const fault = machineFaults[(seed - 1) % machineFaults.length] as MachineFault;
  return { seed, fault, place: random.pick(places), after: 1 + random.below(3) };
}

export const machineTitle = ({ seed, fault, place, after }: MachinePlan): string =>
  `seed ${seed}: ${fault}, at ${place.point} of ${place.stage}, after iteration ${after}`;

/** Bound of the time until the lost job begins on another machine; undefined when there is none. */
export const boundS = ({ fault, place }: MachinePlan): number | undefined => (place.again ? withinS[fault] : undefined);
