/** Faults of whole machines, one per seed: what happens to which machine at which point, and the checks after it. */
import { verifyLedger } from '../../api/ledger/verify.ts';
import type { FaultFacts, FaultPoint } from '../../infra/faults/index.ts';
import type { Standing } from '../inject.ts';
import type { StartedRun } from '../loop-under-test.ts';
import { difference } from './bed.ts';
import { end } from './machine-bed.ts';
import type { Machine, MachineBed } from './machine-bed.ts';
import { Seeded } from './seeded.ts';

export const machineFaults = [
  'killed',
  'cut off and back',
  'cut off for good',
  'two killed at once',
  'control machine',
] as const;
export type MachineFault = (typeof machineFaults)[number];

/** What a machine is doing when it happens. */
const points: readonly { readonly stage: string; readonly point: FaultPoint; readonly facts: FaultFacts }[] = [
  { stage: 'rollout', point: 'sample.token', facts: {} },
  { stage: 'rollout', point: 'job.begin', facts: { stage: 'rollout' } },
  { stage: 'rollout', point: 'result.before', facts: { stage: 'rollout' } },
  { stage: 'rollout', point: 'result.after', facts: { stage: 'rollout' } },
  { stage: 'rollout', point: 'ack.before', facts: { stage: 'rollout' } },
  { stage: 'reward', point: 'job.begin', facts: { stage: 'reward' } },
  { stage: 'reward', point: 'result.before', facts: { stage: 'reward' } },
];

export interface MachinePlan {
  readonly seed: number;
  readonly fault: MachineFault;
  readonly place: (typeof points)[number];
  /** Committed iterations before it is armed. */
  readonly after: number;
}

export function machinePlan(seed: number): MachinePlan {
  const random = new Seeded(seed);
  const fault = machineFaults[(seed - 1) % machineFaults.length] as MachineFault;
  return { seed, fault, place: random.pick(points), after: 1 + random.below(3) };
}

export const machineTitle = ({ seed, fault, place, after }: MachinePlan): string =>
  `seed ${seed}: ${fault}, at ${place.point} of ${place.stage}, after iteration ${after}`;

export interface MachineResult {
  readonly plan: MachinePlan;
  /** From the loss to the run's next decision. It needs the job that the machine had, so that job went on elsewhere before. */
  readonly wentOnAfterS: number;
  readonly seconds: number;
}

const patienceMs = 120_000;

/** Throws an error with the seed when the run is not what an undisturbed one is. */
export async function runMachineSeed(on: MachineBed, plan: MachinePlan): Promise<MachineResult> {
  await on.up();
  const { bed } = on;
  const { loop, injector } = bed;
  const expected = await bed.reference('grpo');
  const startedAt = performance.now();
  const run = await loop.start(bed.recipe('grpo'));
  await loop.passes(run, plan.after);
  const id = `${run.runId}-machine`;
  injector.arm({ id, point: plan.place.point, facts: plan.place.facts, action: 'stand' });
  const standing = await injector.stands(id, AbortSignal.timeout(patienceMs)).catch((cause: unknown) => {
    throw new Error(`did not fire: ${machineTitle(plan)}`, { cause });
  });
  injector.disarm(id);
  const wentOnAfterS = await act(on, plan.fault, run, standing);
  await loop.reaches(run, 'completed');
  const seconds = (performance.now() - startedAt) / 1000;
  const { faults } = await verifyLedger(loop.store, run.runId, { deep: true });
  loop.runs.delete(run); // need not be verified again when the bed is removed
  const unlike = difference(await bed.essence(run), expected);
  if (faults.length > 0 || unlike !== undefined)
    throw new Error(
      `${machineTitle(plan)}: ${JSON.stringify(faults)} ${unlike ?? ''}\n${(await loop.lines(run)).slice(-25).join('\n')}`,
    );
  return { plan, wentOnAfterS, seconds };
}

async function act(on: MachineBed, fault: MachineFault, run: StartedRun, standing: Standing): Promise<number> {
  const { injector } = on.bed;
  const machine = on.machines.find(({ name }) => name === standing.process);
  if (machine === undefined) throw new Error(`${standing.process} is no machine of this test`);
  const resume = () => standing.identity !== undefined && injector.thaw(standing.identity);
  const at = Date.now();
  switch (fault) {
    case 'killed':
      await lose(on, machine);
      return wentOn(on, run, at);
    case 'two killed at once':
      await Promise.all([...on.machines].map((one) => lose(on, one)));
      await on.up();
      return wentOn(on, run, at);
    case 'cut off and back': {
      machine.proxy.cut();
      resume(); // it goes on with its job, and cannot tell anybody
      const after = await wentOn(on, run, at);
      machine.proxy.mend();
      return after;
    }
    case 'cut off for good': {
      machine.proxy.cut();
      resume();
      const after = await wentOn(on, run, at);
      await on.bed.loop.reaches(run, 'completed');
      await lose(on, machine);
      return after;
    }
    case 'control machine':
      await injector.killEverything();
      resume();
      await on.up();
      return wentOn(on, run, at);
  }
}

async function lose(on: MachineBed, machine: Machine): Promise<void> {
  on.forget(machine);
  await end(machine);
}

/** Seconds from `since` until the run's next decision. */
async function wentOn({ bed: { injector } }: MachineBed, { runId }: StartedRun, since: number): Promise<number> {
  const id = `${runId}-on`;
  injector.arm({ id, point: 'decide.after', facts: { runId }, action: 'note' });
  const { atMs } = await injector.fired(id, AbortSignal.timeout(patienceMs));
  injector.disarm(id);
  return (atMs - since) / 1000;
}
