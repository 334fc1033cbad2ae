/** Entry of the control process: Temporal workflows and activities, the dispatcher, the log collector. */
import { parseRecipe } from '../../core/recipe/index.ts';
import { runOf } from '../../core/records/keys.ts';
import { endedStates } from '../../core/run-states.ts';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Context } from '@temporalio/activity';
import { DefaultLogger, Runtime, Worker } from '@temporalio/worker';
import { createActivities } from '../../activities/index.ts';
import type { ActivityPorts } from '../../activities/index.ts';
import type { Store } from '../../core/ports/store.ts';
import { errorToJson, InvalidInputError } from '../../core/errors.ts';
import { liveSubject, timings, wireVersion } from '../../core/wire/messages.ts';
import { controlName } from '../../core/wire/worker-identity.ts';
import type { WorkerPlace } from '../../core/wire/worker-identity.ts';
import { taskQueue } from '../../core/wire/workflow.ts';
import { buildId, builtFile, packageRoot, petrelHome } from '../../infra/home.ts';
import { connectNats, connectSystem } from '../../infra/nats/connection.ts';
import { Departures } from '../../infra/nats/departures.ts';
import { Dispatcher, jobIdOf } from '../../infra/nats/dispatcher.ts';
import { PermitOffice } from '../../infra/nats/permit-office.ts';
import { publishBuild, readBuild } from '../../infra/fleet/builds.ts';
import type { Build } from '../../infra/fleet/builds.ts';
import { openJoinOffice } from '../../infra/nats/join-office.ts';
import { ec2Provider } from '../../infra/fleet/ec2/provider.ts';
import { UsageBook } from '../../infra/fleet/usage-book.ts';
import { fleetStore } from '../../infra/stack/fleet-notes.ts';
import { readEndpoints, sharedStack } from '../../infra/stack/state.ts';
import { drivenRuns, servesStore } from '../../infra/stack/driven-runs.ts';
import { instanceName, stackIdentity, stackName } from '../../infra/stack/identity.ts';
import { announceReady, keepStack, LeftMachines, stackFromEnv } from '../../infra/stack/index.ts';
import { noteJoined } from '../../infra/stack/fleet-register.ts';
import { keepInputs } from '../../infra/retention/inputs.ts';
import { endSweep } from '../../infra/retention/orphans.ts';
import { defaultGraceMs, sayPass, sweepStore } from '../../infra/retention/sweep.ts';
import { getBlob, getJsonBlob, getScheduleModule, putBlob, putJsonBlob } from '../../infra/store/blobs.ts';
import { claimRun, writeRun } from '../../infra/store/new-run.ts';
import { admitHere, fullPlaces, watchRoom } from '../../infra/stack/admission.ts';
import { runStateOf } from '../../infra/store/digest.ts';
import { needShards, putManifest } from '../../infra/store/manifests.ts';
import { batchToAdopt } from '../../infra/store/earlier-batches.ts';
import { standbyStart } from '../../infra/store/standby-start.ts';
import { openNextTerm } from '../../infra/store/terms.ts';
import { findHole } from '../../infra/store/log-holes.ts';
import { openExistingStore } from '../../infra/store/open.ts';
import { storesByUrl } from '../../infra/store/open-stores.ts';
import { decide } from '../../infra/store/records.ts';
import { RunLog } from '../../infra/store/run-log.ts';
import { ScheduleLog } from '../../infra/store/schedule-log.ts';
import { appendStatus, pausesFor } from '../../infra/store/status.ts';
import { noteMetricsFile } from '../../infra/telemetry/metrics-notes.ts';
import { watchLoopDelay } from '../../infra/telemetry/loop-delay.ts';
import { LogCollector, lineWriter } from '../../infra/telemetry/run-log-lines.ts';
import { connectTemporalClient, connectTemporalWorker, dataConverterOf } from '../../infra/temporal/connection.ts';
import { startRunWorkflow, tellRunWorkflow } from '../../infra/temporal/run-workflow.ts';
import { within } from '../drain.ts';
import { mapActivityErrors } from './activity-errors.ts';
import { ControlFleet } from './fleet.ts';
import { givenUp } from './given-up.ts';
import { heartbeating } from './heartbeat.ts';
import { reconcileFleet } from './reconcile-fleet.ts';
import { reconcileJanitors } from './reconcile-janitors.ts';
import { reconcileSchedules } from './reconcile-schedules.ts';
import { failOrphanedActivities, temporalIdentity } from './orphaned-activities.ts';
import { reconcileRuns } from './reconcile-runs.ts';
import { watchWorkers } from './worker-watch.ts';
import { writeMetricsFiles } from './write-metrics-files.ts';

const timing = timings.local;
/** How long the end of a run waits until its bill is complete. */
const billMs = 2_000;
const name = `control-${process.pid}`;
const instance = instanceName(petrelHome());
const place: WorkerPlace = { instance, worker: controlName };
const stack = stackFromEnv();
Runtime.install({ logger: new DefaultLogger('WARN') });

const nc = await connectNats(stack, name);
const usage = new UsageBook(
  async () => {
    const store = fleetStore(petrelHome());
    return store === undefined ? undefined : fleet.open(await ports.openStore(store));
  },
  (line) => console.log(line),
);
const dispatcher = await Dispatcher.open(nc, {
  process: name,
  instance,
  timing,
  noRoom: async () => (await fullPlaces([], petrelHome()))[0],
  ended: (runId, text) => lineWriter(nc, runId, place)('warn', text),
  came: ({ instance: machine }) => fleet.came(machine),
  used: ({ instance: machine, run, iteration, from, to, use }) =>
    usage.note({ instance: machine, run, iteration, from, to, use }),
});
const system = await connectSystem(stack.nats, name);
const log = (line: string) => console.log(line);
const { events: workerEvents, counts: eventCounts } = await watchWorkers({
  nc,
  home: petrelHome(),
  instance,
  timing,
  departuresAreTold: system !== undefined,
  say: (runId) => lineWriter(nc, runId, place),
  log,
});
if (system !== undefined)
  new Departures(
    system,
    (gone) => {
      dispatcher.lost(gone);
      workerEvents.lost(gone, Date.now());
      fleet.lost(gone.instance);
    },
    stack.nats.ofOthers ? stack.nats.credential?.jwt : undefined,
  );
new PermitOffice(nc, { file: join(petrelHome(), 'stack', 'permits.json'), log }).open();
/** A new store has no runs yet, so it is opened otherwise than for a job. */
async function openServed(url: string): Promise<Store> {
  if (await servesStore(petrelHome(), url)) return openExistingStore(url);
  throw new InvalidInputError(`expected a store of this stack, got ${url}, which the stack does not know`, {
    hint: 'petrel fleet token --pool <name> --store <store> makes it known',
  });
}

let ownBuild: Promise<Build> | undefined;
/** Publications by store, because machines that come at once wait for the same writes. */
const publishing = new Map<string, Promise<string>>();
function publishOwnBuild(url: string): Promise<string> {
  const work = publishing.get(url) ?? putOwnBuild(url).finally(() => publishing.delete(url));
  publishing.set(url, work);
  return work;
}
async function putOwnBuild(url: string): Promise<string> {
  ownBuild ??= readBuild(packageRoot());
  const build = await ownBuild.catch((error: unknown) => {
    ownBuild = undefined; // the next machine tries again
    throw error;
  });
  await publishBuild(await openServed(url), build);
  return build.digest;
}

const left = new LeftMachines(petrelHome());
const workersAccount = readEndpoints(petrelHome())?.nats?.authority.workers;
if (stack.listen !== undefined && workersAccount !== undefined)
  openJoinOffice(nc, system, {
    account: workersAccount,
    stackInstance: instance,
    stackName: stackName(petrelHome()),
    publishBuild: (store) => publishOwnBuild(store),
    left: (machine) => {
      log(`a machine of the pool ${machine.pool} (${machine.host}) cannot work: ${machine.message}`);
      left.note(machine);
    },
    joined: (machine) => noteJoined(petrelHome(), machine),
    isRevoked: (key) => readEndpoints(petrelHome())?.nats?.authority.revoked?.[key] !== undefined,
    admitBought: async (machine) => fleet.admit(machine, await openServed(machine.store)),
  });
const runStores = new Map<string, Store>();
const loopDelay = watchLoopDelay();

const scheduleLogs = new Map<string, ScheduleLog>();
const openScheduleLog = (store: Store, name: string): ScheduleLog => {
  const key = `${store.url} ${name}`;
  const log = scheduleLogs.get(key) ?? new ScheduleLog(store, name);
  scheduleLogs.set(key, log);
  return log;
};

const fleet = new ControlFleet({
  home: petrelHome(),
  stack: stackName(petrelHome()),
  provider: ec2Provider(),
  nc,
  client: () => client,
  log,
  say: (runId, text) => ports.say(runId, 'info', text),
  givenBack: (machine) => workerEvents.givenBack(machine),
});

const ports: ActivityPorts = {
  process: name,
  stack: stackName(petrelHome()),
  openStore: storesByUrl((url) => servesStore(petrelHome(), url)),
  drivesRun: (run) => drivenRuns(petrelHome()).drives(run),
  findHole,
  batchToAdopt,
  openNextTerm,
  standbyStart,
  admitWork: (store) => admitHere(store, petrelHome()),
  openLog: (store, runId) => {
    runStores.set(runId, store);
    return new RunLog(store, runId);
  },
  appendStatus: async (log, change, ...rest) => {
    // Who sees that a run has ended or paused may ask for its bill. The run does not wait long for the store of the
    // fleet.
    if (change.state === 'paused' || (change.state !== undefined && endedStates.has(change.state)))
      await within(billMs, usage.write());
    return appendStatus(log, change, ...rest);
  },
  pausesFor,
  decide: async (store, key, schema, record, agrees) => {
    const decided = await decide(store, key, schema, record, agrees);
    // Another process had taken over the work because this one seemed dead. Its decision is valid.
    if (decided.adopted)
      ports.say(runOf(key) ?? '', 'warn', `${key}: late decision refused; an equal one of another process exists`);
    return decided;
  },
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
    openScheduleLog,
    readModule: getScheduleModule,
    keepInputs,
    claimRun,
    writeRun,
    startRun: async (carry, kind) => {
      await drivenRuns(petrelHome()).note({ ...carry, kind });
      const { recipe } = await new RunLog(await ports.openStore(carry.store), carry.runId).revision();
      noteMetricsFile(petrelHome(), carry, parseRecipe(recipe), join(petrelHome(), 'metrics'));
      await startRunWorkflow(client, carry, kind);
    },
    tellRun: async (runId, desired) => tellRunWorkflow(client, runId, desired),
  },
  fleet: fleet.ports,
  events: eventCounts,
  say: (runId, level, text) => lineWriter(nc, runId, place)(level, text),
  live: (runId, note) => nc.publish(liveSubject(runId), JSON.stringify({ v: wireVersion, ...note })),
  endSweep,
  sweepStore: (store, say, now, signal) =>
    sweepStore(store, { now, graceMs: defaultGraceMs, signal }, (pass) =>
      sayPass(pass, (text) => say(pass.runId, text)),
    ),
  now: () => new Date(),
  beginAttempt: () => givenUp(Context.current().info),
  whileHeartbeating: (work) => heartbeating(Context.current(), timing.heartbeatMs, work),
};

const client = await connectTemporalClient(stack);
void failOrphanedActivities(client, petrelHome(), (line) => console.log(line)).catch((error: unknown) =>
  console.log(`could not look for activities of the last control process: ${errorToJson(error).message}`),
);

/** Another control process of the stack may have opened the log of a run whose lines come here. */
async function findRunStore(runId: string): Promise<void> {
  const run = (await drivenRuns(petrelHome()).all()).find((one) => one.runId === runId);
  if (run !== undefined) runStores.set(runId, await ports.openStore(run.store));
}

const shared = sharedStack(petrelHome()) !== undefined;
const collector = {
  writer: `${instance}-${process.pid}`,
  instance,
  ...(shared && { queue: `logs-${stackIdentity(petrelHome()).id}` }),
};
const logs = new LogCollector(nc, collector, (runId) => {
  const store = runStores.get(runId);
  // Its lines are kept until the next flush.
  if (store === undefined && shared)
    void findRunStore(runId).catch((error: unknown) => log(errorToJson(error).message));
  return store;
});
const worker = await Worker.create({
  connection: await connectTemporalWorker(stack),
  namespace: stack.temporal.namespace ?? 'default',
  dataConverter: dataConverterOf(stack.temporal),
  identity: temporalIdentity(instance),
  taskQueue,
  workflowBundle: { code: await readFile(builtFile('workflow-bundle.js'), 'utf8') },
  activities: mapActivityErrors(createActivities(ports)),
  // A short identity, because every third event of a history contains it; the default has 84 characters.
  buildId: buildId().slice(0, 12),
  // After an older copy of Temporal's database was restored, a history may not match this process's cache. Such a
  // workflow is ended and started again from the store, because otherwise its task would fail for ever.
  workflowFailureErrorTypes: { '*': ['NondeterminismError'] },
  maxConcurrentActivityTaskExecutions: 1000,
  shutdownGraceTime: '2 s',
  shutdownForceTime: '5 s',
  stickyQueueScheduleToStartTimeout: '1 s',
});

const leaving = new AbortController();
const leave = () => {
  leaving.abort();
  worker.shutdown();
};
process.once('SIGTERM', leave);
process.once('SIGINT', leave);
const running = worker.run();
watchRoom(petrelHome(), (line) => console.log(line));
void keepStack(petrelHome(), leaving.signal, (line) => console.log(line));
loopDelay.restart();
announceReady();
const kept = {
  home: petrelHome(),
  stack: ports.stack,
  client,
  openStore: ports.openStore,
  log: (line: string) => console.log(line),
};
const driven = reconcileRuns({ ...kept, say: (runId, text) => ports.say(runId, 'warn', text) }, leaving.signal);
const schedules = reconcileSchedules({ ...kept, openScheduleLog }, leaving.signal);
const janitors = reconcileJanitors({ home: petrelHome(), client, log: (line) => console.log(line) }, leaving.signal);
const metricsFiles = writeMetricsFiles(kept, leaving.signal);
const keptFleet = reconcileFleet(kept, leaving.signal);
await running;
console.log(`event loop delay p99.9: ${loopDelay.p999Ms()} ms`);
await driven;
await Promise.all([schedules, janitors, metricsFiles, keptFleet]);
await usage.write();
await client.connection.close();
await logs.close();
await system?.close();
await nc.close();
process.exit(0);
