/** Runs one seed of faults of machines: a run, the loss of a machine, and the checks after it. */
import { at } from '../../core/at.ts';
import { verifyLedger } from '../../api/ledger/verify.ts';
import { workerGoneSubject } from '../../core/wire/messages.ts';
import type { ArmedFault } from '../../log/faults/index.ts';
import type { Standing } from '../inject.ts';
import type { StartedRun } from '../loop-under-test.ts';
import { difference } from './bed.ts';
import type { Bed, Essence } from './bed.ts';
import { end } from './machine-bed.ts';
import type { ClusterBed } from './cluster-bed.ts';
import type { Machine, MachineBed } from './machine-bed.ts';
import { machineTitle } from './machine-plan.ts';
import type { MachinePlan } from './machine-plan.ts';
import { patienceMs } from '../patience.ts';

export interface MachineResult {
  readonly plan: MachinePlan;
  /**
   * Seconds from the loss until the lost job began on another machine. Absent when the job had its result, or went on
   * where it was.
   */
  readonly elsewhereAfterS?: number;
  /** Seconds from the loss until the run's next decision, which needs the lost job. */
  readonly decidedAfterS: number;
  readonly seconds: number;
}

/** A process of a worker that stands at the plan's point, and the job that it has. */
interface Stand {
  readonly on: { readonly bed: Bed };
  readonly run: StartedRun;
  readonly standing: Standing;
  readonly jobId: string;
}

interface Loss extends Stand {
  readonly on: MachineBed;
  readonly plan: MachinePlan;
  /** The machine of the process. */
  readonly machine: Machine;
}

const patience = () => AbortSignal.timeout(patienceMs);

/**
 * Throws an error with the seed when the run is not what an undisturbed one is.
 */
export function runMachineSeed(on: MachineBed, plan: MachinePlan): Promise<MachineResult> {
  return onRun(on, plan, (given) => disturb(on, plan, given));
}

/**
 * Does what `runMachineSeed` does, but a server of the stack's NATS is killed, another one each seed, and comes back
 * after the run.
 */
export function runClusterSeed(on: ClusterBed, plan: MachinePlan): Promise<MachineResult> {
  return onRun(on, plan, (given) => loseServer(on, plan, given));
}

interface RunToDisturb {
  readonly run: StartedRun;
  /** The essence of an undisturbed run. */
  readonly expected: Essence;
  readonly startedAt: number;
}

/** Disturbs a run that has come to the plan's iteration. */
async function onRun(
  on: MachineBed | ClusterBed,
  plan: MachinePlan,
  disturbed: (given: RunToDisturb) => Promise<MachineResult>,
): Promise<MachineResult> {
  const { loop, injector } = on.bed;
  try {
    await on.up();
    const expected = await on.bed.reference('grpo');
    const startedAt = performance.now();
    const run = await loop.start(on.bed.recipe('grpo'));
    await loop.passes(run, plan.after);
    return await disturbed({ run, expected, startedAt });
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    throw new Error(`${machineTitle(plan)}: ${text}`, { cause: error });
  } finally {
    injector.disarmAll();
  }
}

async function loseServer(
  on: ClusterBed,
  plan: MachinePlan,
  { run, expected, startedAt }: RunToDisturb,
): Promise<MachineResult> {
  const stand = await standAt(on, plan, run);
  const { servers } = on.cluster;
  const server = at(servers, plan.seed % servers.length);
  const killedAt = Date.now();
  await server.kill();
  const decided = visit(stand, 'decided', { point: 'decide.after', facts: {} });
  thaw(stand);
  const decidedAfterS = secondsFrom(killedAt, await decided());
  await on.bed.loop.reaches(run, 'completed');
  const seconds = (performance.now() - startedAt) / 1000;
  await server.restart();
  await isAsUndisturbed(on, run, expected);
  return { plan, decidedAfterS, seconds };
}

async function disturb(
  on: MachineBed,
  plan: MachinePlan,
  { run, expected, startedAt }: RunToDisturb,
): Promise<MachineResult> {
  const { loop } = on.bed;
  const loss = await machineAt(on, plan, run);
  const took = await lose(loss);
  await loop.reaches(run, 'completed');
  await on.ready();
  const seconds = (performance.now() - startedAt) / 1000;
  await isAsUndisturbed(on, run, expected);
  if (plan.fault === 'cut off for long and back') await worksAlone(loss, expected);
  return { plan, ...took, seconds };
}

async function isAsUndisturbed({ bed }: { readonly bed: Bed }, run: StartedRun, expected: Essence): Promise<void> {
  const { faults } = await verifyLedger(bed.loop.store, run.runId, { deep: true });
  bed.loop.runs.delete(run); // need not be verified again when the bed is removed
  const unlike = difference(await bed.essence(run), expected);
  if (faults.length > 0 || unlike !== undefined)
    throw new Error(`${JSON.stringify(faults)} ${unlike ?? ''}\n${(await bed.loop.lines(run)).slice(-25).join('\n')}`);
}

/** The machine that was cut off does all jobs of another run. */
async function worksAlone({ on, machine }: Loss, expected: Essence): Promise<void> {
  for (const other of on.machines.filter((one) => one !== machine)) await killed(on, other);
  const run = await on.bed.loop.start(on.bed.recipe('grpo'));
  await on.bed.loop.reaches(run, 'completed');
  await isAsUndisturbed(on, run, expected);
}

/** Stops the first process that comes to the plan's point. */
async function standAt<On extends { readonly bed: Bed }>(on: On, plan: MachinePlan, run: StartedRun) {
  const { injector } = on.bed;
  const { stage, point } = plan.place;
  const id = `${run.runId}-machine`;
  injector.arm({ id, point, facts: { stage, runId: run.runId }, action: 'stand' });
  const standing = await injector.stands(id, patience()).catch((cause: unknown) => {
    throw new Error('did not fire', { cause });
  });
  const { jobId } = standing.facts;
  if (typeof jobId !== 'string') throw new Error(`expected a process with a job, got ${standing.process}`);
  return { on, run, standing, jobId };
}

async function machineAt(on: MachineBed, plan: MachinePlan, run: StartedRun): Promise<Loss> {
  const stand = await standAt(on, plan, run);
  const machine = on.machines.find(({ name }) => name === stand.standing.process);
  if (machine === undefined) throw new Error(`expected a machine of this test, got ${stand.standing.process}`);
  return { ...stand, plan, machine };
}

type Took = Pick<MachineResult, 'elsewhereAfterS' | 'decidedAfterS'>;

async function lose(loss: Loss): Promise<Took> {
  const { on, machine, plan } = loss;
  switch (plan.fault) {
    case 'killed':
      return goesOn(loss, () => killed(on, machine));
    case 'two killed at once':
      return goesOn(loss, async () => {
        await Promise.all([...on.machines].map((one) => killed(on, one)));
        await on.up();
      });
    case 'cut off and back':
      return cutOffAndBack(loss);
    case 'cut off for long and back':
      return cutOffAndBack(loss, connectionCloses(loss));
    case 'cut off for good': {
      const took = await goesOn(loss, () => cut(loss));
      thaw(loss);
      await on.bed.loop.reaches(loss.run, 'completed');
      await killed(on, machine);
      return took;
    }
    case 'control machine':
      return controlMachine(loss);
    case 'one of three NATS servers':
      throw new Error('this fault needs a stack whose NATS is a cluster');
  }
}

async function killed(on: MachineBed, machine: Machine): Promise<void> {
  on.forget(machine);
  await end(machine);
}

/** Cuts off the machine; with a folder as the store it also stands still, because it would reach the folder. */
async function cut(loss: Loss): Promise<void> {
  for (const proxy of loss.machine.proxies) proxy.cut();
  if (loss.on.cutsStore) thaw(loss);
}

function thaw({ on, standing: { identity } }: Stand): void {
  if (identity !== undefined) on.bed.injector.thaw(identity);
}

/** Resolves when the control process has learnt that the machine's connection is closed. */
async function connectionCloses({ on, machine }: Loss): Promise<void> {
  const gone = on.bed.loop.nc.subscribe(workerGoneSubject);
  for await (const message of gone) if (message.json<{ instance: string }>().instance === machine.instance()) return;
}

/**
 * The machine is back when its job has been done elsewhere, and `until` has resolved. It finishes the job too, and that
 * result is refused. When the run has ended by then, the machine may hear that first, and drops its samples.
 */
async function cutOffAndBack(loss: Loss, until?: Promise<void>): Promise<Took> {
  const { on, run, machine, plan, jobId } = loss;
  const took = await goesOn(loss, () => cut(loss));
  await until;
  thaw(loss);
  for (const proxy of machine.proxies) proxy.mend();
  if (!plan.place.again) return took;
  const { stage } = plan.place;
  const over = stage === 'rollout' ? '(late result refused|\\S+ is paused or has ended)' : 'late result refused';
  await on.bed.loop.said(run, new RegExp(`${machine.instance()}/\\S+: ${stage} ${jobId}: ${over}`));
  return took;
}

/** The machine keeps its job, and finds the control machine's servers again. */
async function controlMachine(loss: Loss): Promise<Took> {
  const { on } = loss;
  const at = Date.now();
  await on.bed.injector.killEverything();
  thaw(loss);
  const decided = visit(loss, 'decided', { point: 'decide.after', facts: {} });
  await on.up();
  return { decidedAfterS: secondsFrom(at, await decided()) };
}

/**
 * Causes the loss. Resolves when another machine has done the job, where it has to be done again, and the run has
 * decided.
 */
async function goesOn(loss: Loss, cause: () => Promise<void>): Promise<Took> {
  const { again } = loss.plan.place;
  const begun = visit(loss, 'begun', { point: 'job.begin' });
  const done = visit(loss, 'done', { point: 'result.after' });
  const at = Date.now();
  await cause();
  const decided = visit(loss, 'decided', { point: 'decide.after', facts: {} });
  const elsewhere = again ? [await begun(), await done()] : [];
  const same = elsewhere.find(({ process }) => process === loss.machine.name);
  if (same !== undefined) throw new Error(`${same.process} was lost, and came to ${same.point} nevertheless`);
  const decidedAfterS = secondsFrom(at, await decided());
  const [began] = elsewhere;
  return began === undefined ? { decidedAfterS } : { elsewhereAfterS: secondsFrom(at, began), decidedAfterS };
}

const secondsFrom = (at: number, { atMs }: Standing): number => (atMs - at) / 1000;

/** The next visit of a point, from this call on; of the lost job unless other facts are given. */
function visit(
  { on: { bed }, run: { runId }, jobId }: Stand,
  name: string,
  { facts = { jobId }, ...of }: Pick<ArmedFault, 'point' | 'facts'>,
): () => Promise<Standing> {
  const id = `${runId}-${name}`;
  bed.injector.arm({ id, facts: { runId, ...facts }, ...of, action: 'note' });
  return () =>
    bed.injector.fired(id, patience()).catch((cause: unknown) => {
      throw new Error(`no process came to ${of.point} (${name})`, { cause });
    });
}
