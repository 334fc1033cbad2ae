/** The ports of the activities, on a real stack. */
import { join } from 'node:path';
import { Context } from '@temporalio/activity';
import type { ActivityPorts } from '../../activities/index.ts';
import { parseRecipe } from '../../core/recipe/index.ts';
import { runOf } from '../../core/records/keys.ts';
import type { Store } from '../../core/ports/store.ts';
import { endedStates } from '../../core/run-states.ts';
import { liveSubject, timings, wireVersion } from '../../core/wire/messages.ts';
import type { UsageBook } from '../../infra/fleet/usage-book.ts';
import { jobIdOf } from '../../infra/nats/jobs/dispatcher.ts';
import type { Dispatcher } from '../../infra/nats/jobs/dispatcher.ts';
import type { RunFeeds } from '../../infra/nats/run-feeds.ts';
import { admitHere } from '../../infra/stack/admission.ts';
import { drivenRuns } from '../../infra/stack/driven-runs.ts';
import { noteMetricsFile } from '../../infra/telemetry/metrics-notes.ts';
import { startRunWorkflow, tellRunWorkflow } from '../../infra/temporal/run-workflow.ts';
import { getBlob, getJsonBlob, getScheduleModule, putBlob, putJsonBlob } from '../../log/objects/blobs.ts';
import { runStateOf } from '../../log/objects/digest.ts';
import { needShards, putManifest } from '../../log/objects/manifests.ts';
import { decide, recordText } from '../../log/objects/records.ts';
import { keepInputs } from '../../log/retention/inputs.ts';
import { endSweep } from '../../log/retention/orphans.ts';
import { defaultGraceMs, sayPass, sweepStore } from '../../log/retention/sweep.ts';
import { batchToAdopt } from '../../log/run/earlier-batches.ts';
import { findHole } from '../../log/run/log-holes.ts';
import { claimRun, writeRun } from '../../log/run/new-run.ts';
import { RunLog } from '../../log/run/run-log.ts';
import { standbyStart } from '../../log/run/standby-start.ts';
import { appendStatus, pausesFor } from '../../log/run/status.ts';
import { openNextTerm } from '../../log/run/terms.ts';
import { ScheduleLog } from '../../log/schedules/schedule-log.ts';
import { within } from '../drain.ts';
import type { ControlFleet } from './fleet.ts';
import { givenUp } from './given-up.ts';
import { heartbeating } from './heartbeat.ts';
import type { ControlPlace } from './place.ts';
import type { WorkerWatch } from './worker-watch.ts';
import { ColumnWriter } from './write-columns.ts';

/** How long the end of a run waits until its bill is complete. */
const billMs = 2_000;

export interface PortParts {
  readonly openStore: (url: string) => Promise<Store>;
  readonly dispatcher: Dispatcher;
  readonly watch: WorkerWatch;
  readonly usage: UsageBook;
  readonly feeds: RunFeeds;
  readonly fleet: ControlFleet;
  /** Stores of the runs whose log was opened, for their log lines. */
  readonly runStores: Map<string, Store>;
}

export function activityPorts(place: ControlPlace, parts: PortParts): ActivityPorts {
  const { home, nc, client, name, stackName, log, sayer } = place;
  const { openStore, dispatcher, watch, usage, feeds, fleet, runStores } = parts;
  const columns = new ColumnWriter(log);
  const say: ActivityPorts['say'] = (runId, level, text) => sayer(runId)(level, text);
  return {
    process: name,
    stack: stackName,
    openStore,
    drivesRun: (run) => drivenRuns(home).drives(run),
    findHole,
    batchToAdopt,
    openNextTerm,
    standbyStart,
    admitWork: (store) => admitHere(store, home),
    openLog: (store, runId) => {
      runStores.set(runId, store);
      return new RunLog(store, runId);
    },
    appendStatus: async (of, change, ...rest) => {
      // Who sees that a run has ended or paused may ask for its bill. The run does not wait long for the store of the
      // fleet.
      if (change.state === 'paused' || (change.state !== undefined && endedStates.has(change.state)))
        await within(billMs, usage.write());
      const entry = await appendStatus(of, change, ...rest);
      void feeds.changed(of);
      return entry;
    },
    committed: (of, position) => {
      void columns.committed(of, position);
      void feeds.changed(of);
    },
    pausesFor,
    decide: async (store, key, schema, record, agrees) => {
      const decided = await decide(store, key, schema, record, agrees);
      // Another process had taken over the work because this one seemed dead. Its decision is valid.
      if (decided.adopted)
        say(runOf(key) ?? '', 'warn', `${key}: late decision refused; an equal one of another process exists`);
      return decided;
    },
    recordText,
    runStateOf,
    putManifest,
    needShards,
    getBlob,
    putBlob,
    getJsonBlob,
    putJsonBlob,
    dispatcher,
    jobIdOf,
    listWorkers: () => dispatcher.workers(),
    schedules: {
      openScheduleLog: scheduleLogs(),
      readModule: getScheduleModule,
      keepInputs,
      claimRun,
      writeRun,
      startRun: async (carry, kind) => {
        await drivenRuns(home).note({ ...carry, kind });
        const { recipe } = await new RunLog(await openStore(carry.store), carry.runId).revision();
        noteMetricsFile(home, carry, parseRecipe(recipe), join(home, 'metrics'));
        await startRunWorkflow(client, carry, kind);
      },
      tellRun: async (runId, desired) => tellRunWorkflow(client, runId, desired),
    },
    fleet: fleet.ports,
    events: watch.counts,
    say,
    live: (runId, note) => nc.publish(liveSubject(runId), JSON.stringify({ v: wireVersion, ...note })),
    endSweep,
    sweepStore: (store, tell, now, signal) =>
      sweepStore(store, { now, graceMs: defaultGraceMs, signal }, (pass) =>
        sayPass(pass, (text) => tell(pass.runId, text)),
      ),
    now: () => new Date(),
    beginAttempt: () => givenUp(Context.current().info),
    whileHeartbeating: (work) => heartbeating(Context.current(), timings.loopback.heartbeatMs, work),
  };
}

/** Opens each schedule's log once. */
function scheduleLogs(): (store: Store, name: string) => ScheduleLog {
  const logs = new Map<string, ScheduleLog>();
  return (store, name) => {
    const key = `${store.url} ${name}`;
    const log = logs.get(key) ?? new ScheduleLog(store, name);
    logs.set(key, log);
    return log;
  };
}
