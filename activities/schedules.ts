/** Handles a time of a schedule: decides its outcome in the store, then creates and starts the run. */
import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { errorToJson, PetrelError, TerminalError } from '../core/errors.ts';
import { makeRunId } from '../core/ids.ts';
import type { RunId } from '../core/ids.ts';
import type { Store } from '../core/ports/store.ts';
import { keys } from '../core/records/keys.ts';
import { modulesOf } from '../core/records/schema.ts';
import type { FiringRecord, ScheduleRecord } from '../core/records/schema.ts';
import { endedStates } from '../core/run-states.ts';
import { decideFiring, isOf, isoSeconds, kindOf } from '../core/schedules/decide.ts';
import type { Decision, Firing } from '../core/schedules/decide.ts';
import type { FiringCarry, FiringOutcome } from '../core/wire/workflow.ts';
import type { ScheduleLog } from '../log/schedules/schedule-log.ts';
import type { ActivityPorts } from './ports/index.ts';

/** How often a waiting time checks whether its turn has come. */
const lookMs = 1_000;

export function scheduleActivities(ports: ActivityPorts) {
  return {
    /** Idempotent: the same time gives the same run. Waits as long as the overlap policy requires. */
    async fireSchedule({
      schedule,
      store,
      generation,
      time,
      triggered = false,
    }: FiringCarry & { readonly time: string }): Promise<FiringOutcome> {
      const log = ports.schedules.openScheduleLog(await ports.openStore(store), schedule);
      const firing: Firing = { generation, time: isoSeconds(new Date(time)), triggered };
      return ports.whileHeartbeating(async (signal) => {
        const decided = await decide(ports, log, firing, signal);
        if (decided === undefined) return { outcome: 'dropped' };
        return begin(ports, log, decided);
      });
    },
  };
}

/** The entry with the outcome of this time; undefined when this stack has nothing to do for it. */
async function decide(
  ports: ActivityPorts,
  log: ScheduleLog,
  firing: Firing,
  signal: AbortSignal,
): Promise<FiringRecord | undefined> {
  const asked = new Set<RunId>();
  for (;;) {
    signal.throwIfAborted();
    const view = await log.view();
    if (view.record !== undefined && view.record.owner !== ports.stack) return undefined; // another stack fires it
    const decision = decideFiring(view, firing);
    if (decision.type === 'decided') return decision.firing;
    if (decision.type === 'drop' || view.record === undefined) return undefined;
    const known = view.firings.some((one) => isOf(one, firing));
    if (decision.type !== 'wait' || !known) {
      await log.appendFiring(view.after, {
        at: ports.now().toISOString(),
        ...firingOf(firing, view.record),
        ...(await outcomeOf(decision, log, firing)),
      });
      continue; // another process has written an entry first; the newest one is valid
    }
    if (decision.cancel) for (const runId of decision.by) await cancel(ports, log.store, runId, asked);
    do await delay(lookMs, undefined, { signal });
    while (await log.stands(view, decision.by));
  }
}

function firingOf(firing: Firing, record: ScheduleRecord): Pick<FiringRecord, 'generation' | 'time' | 'kind'> {
  return { generation: firing.generation, time: firing.time, kind: kindOf(record, firing) };
}

async function outcomeOf(
  decision: Extract<Decision, { type: 'start' | 'skip' | 'wait' }>,
  log: ScheduleLog,
  firing: Firing,
): Promise<Pick<FiringRecord, 'outcome' | 'runId' | 'by' | 'why'>> {
  if (decision.type === 'start') return { outcome: 'started', runId: await freeRunId(log, firing) };
  const { why, by } = decision;
  return {
    outcome: decision.type === 'skip' ? 'skipped' : 'waiting',
    why,
    ...(by.length === 0 ? {} : { by: [...by] }),
  };
}

/**
 * Derived from schedule and time, so that a repeated attempt gets the same id. The next nonce is used when another run
 * has the id.
 */
async function freeRunId({ store, name }: ScheduleLog, { generation, time }: Firing): Promise<RunId> {
  for (let attempt = 0; attempt < 16; attempt++) {
    const nonce = createHash('sha256').update(`${name} ${generation} ${time} ${attempt}`).digest('hex').slice(0, 4);
    const runId = makeRunId(name, new Date(time), nonce);
    if ((await store.head(keys.run(runId))) === undefined) return runId;
  }
  throw new TerminalError('Conflict', `no id is free for the run of ${name} at ${time}`);
}

/**
 * Records the cancel in the store, then signals the workflow. A run without a workflow is recorded as cancelled at
 * once.
 */
async function cancel(ports: ActivityPorts, store: Store, runId: RunId, asked: Set<RunId>): Promise<void> {
  const log = ports.openLog(store, runId);
  const status = await log.status.newest();
  if (status === undefined || endedStates.has(status.state) || (status.wish === 'cancel' && asked.has(runId))) return;
  await ports.appendStatus(log, { wish: 'cancel' }, ports.now());
  asked.add(runId);
  if (await ports.schedules.tellRun(runId, 'cancel')) return;
  const after = await log.status.newest();
  if (after !== undefined && !endedStates.has(after.state))
    await ports.appendStatus(log, { state: 'cancelled' }, ports.now());
}

/** Creates and starts the run of an entry whose decision is `start`. Records an error that a retry cannot fix. */
async function begin(ports: ActivityPorts, log: ScheduleLog, firing: FiringRecord): Promise<FiringOutcome> {
  const { runId, why } = firing;
  if (firing.outcome !== 'started' || runId === undefined) {
    return { outcome: firing.outcome === 'failed' ? 'failed' : 'skipped', ...(why === undefined ? {} : { why }) };
  }
  try {
    await makeRun(ports, log, firing, runId);
    return { outcome: 'started', runId };
  } catch (error) {
    if (!(error instanceof PetrelError) || error.kind !== 'terminal') throw error;
    await recordFailure(ports, log, firing, error);
    return { outcome: 'failed', why: errorToJson(error).message };
  }
}

async function makeRun(
  ports: ActivityPorts,
  schedule: ScheduleLog,
  { generation, time }: FiringRecord,
  runId: RunId,
): Promise<void> {
  const { store, name } = schedule;
  const { kind, recipe, inputs } = await definitionOf(schedule, generation);
  const log = ports.openLog(store, runId);
  const origin = { name, generation, time };
  if (!(await ports.schedules.claimRun(log, { name, kind, createdAt: ports.now().toISOString(), schedule: origin }))) {
    const { schedule: other } = await log.run();
    if (other?.name !== name || other.generation !== generation || other.time !== time)
      throw new TerminalError('Conflict', `${runId} is another run`);
    if ((await store.head(keys.tombstone(runId))) !== undefined) return;
  }
  // The schedule may name other inputs by now, or be removed.
  if (!(await ports.schedules.keepInputs(store, inputs)))
    throw new TerminalError(
      'InputsRemoved',
      `the model or the rows of ${name} were removed before its run of ${time} began`,
    );
  const modules = await Promise.all(modulesOf(inputs).map((digest) => ports.schedules.readModule(store, name, digest)));
  await ports.schedules.writeRun(log, { recipe, inputs, modules }, ports.now());
  const state = (await log.status.newest())?.state;
  if (state === undefined || endedStates.has(state)) return; // the run has already ended
  await ports.schedules.startRun({ runId, store: store.url }, kind);
  ports.say(runId, 'info', `started by the schedule ${name} for ${time}`);
}

/** The definition may have been replaced since. The entry that contained it still exists. */
async function definitionOf(log: ScheduleLog, generation: number): Promise<ScheduleRecord['definition']> {
  return (await log.recordAt(generation)).definition;
}

async function recordFailure(
  ports: ActivityPorts,
  log: ScheduleLog,
  { generation, time, kind }: FiringRecord,
  error: PetrelError,
): Promise<void> {
  const entry = {
    at: ports.now().toISOString(),
    generation,
    time,
    kind,
    outcome: 'failed' as const,
    why: error.message,
  };
  while (!(await log.appendFiring((await log.entries()).length, entry)));
}
