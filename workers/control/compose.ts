/**
 * Composes a control process.
 *
 * ```
 *   place ─► watch ─► fleet ─► usage ─► dispatcher ─┬─► offices: machines come and go
 *   (connections)                                   └─► ports ─► Temporal worker
 *                                                            └─► reconcilers, feeds, log lines
 * ```
 */
import { errorToJson } from '../../core/errors.ts';
import type { Store } from '../../core/ports/store.ts';
import { timings } from '../../core/wire/messages.ts';
import { ec2Provider } from '../../infra/fleet/ec2/provider.ts';
import { UsageBook } from '../../infra/fleet/usage-book.ts';
import { Dispatcher } from '../../infra/nats/jobs/dispatcher.ts';
import { RunFeeds } from '../../infra/nats/run-feeds.ts';
import { ensureStreams } from '../../infra/nats/streams.ts';
import { fullPlaces, watchRoom } from '../../infra/stack/admission.ts';
import { drivenRuns, servesStore } from '../../infra/stack/driven-runs.ts';
import { fleetStore } from '../../infra/stack/fleet-notes.ts';
import { announceReady, keepStack } from '../../infra/stack/index.ts';
import type { StackInfo } from '../../infra/stack/index.ts';
import { storesByUrl } from '../../infra/store/open-stores.ts';
import { watchLoopDelay } from '../../infra/telemetry/loop-delay.ts';
import { RunLog } from '../../log/run/run-log.ts';
import { collectLines } from './collected-lines.ts';
import { ControlFleet } from './fleet.ts';
import { openOffices } from './machines.ts';
import { failOrphanedActivities } from './orphaned-activities.ts';
import { connectControl } from './place.ts';
import { activityPorts } from './ports.ts';
import { reconcileFleet } from './reconcile-fleet.ts';
import { reconcileJanitors } from './reconcile-janitors.ts';
import { reconcileRuns } from './reconcile-runs.ts';
import { reconcileSchedules } from './reconcile-schedules.ts';
import { createTemporalWorker } from './temporal-worker.ts';
import { watchWorkers } from './worker-watch.ts';
import { writeMetricsFiles } from './write-metrics-files.ts';

const timing = timings.loopback;

export interface ControlProcess {
  /** Works until `leave` is called. Resolves when all is written and closed. */
  run(): Promise<void>;
  leave(): void;
}

export async function composeControl(stack: StackInfo, home: string): Promise<ControlProcess> {
  const place = await connectControl(stack, home);
  const { instance, name, nc, system, client, log, sayer } = place;
  await ensureStreams(nc, timing); // the watch reads one before the dispatcher declares them
  const openStore = storesByUrl((url) => servesStore(home, url));
  const watch = await watchWorkers({
    ...{ nc, home, instance, timing, log },
    departuresAreTold: system !== undefined,
    say: sayer,
  });
  const fleet = new ControlFleet({
    ...{ home, stack: place.stackName, provider: ec2Provider(), nc, client, log },
    say: (runId, text) => sayer(runId)('info', text),
    givenBack: (machine) => watch.events.givenBack(machine),
  });
  const usage = new UsageBook(async () => {
    const store = fleetStore(home);
    return store === undefined ? undefined : fleet.open(await openStore(store));
  }, log);
  const dispatcher = await Dispatcher.open(nc, {
    ...{ process: name, instance, timing },
    noRoom: async () => (await fullPlaces([], home))[0],
    ended: (runId, text) => sayer(runId)('warn', text),
    came: (worker) => fleet.came(worker.instance),
    reachChanged: (runId, text) => sayer(runId)('info', text),
    used: ({ instance: machine, run, iteration, from, to, use }) =>
      usage.note({ instance: machine, run, iteration, from, to, use }),
  });
  openOffices(place, { dispatcher, watch, fleet });
  const feeds = new RunFeeds(nc, {
    openLog: async (run) =>
      (await drivenRuns(home).drives(run)) ? new RunLog(await openStore(run.store), run.runId) : undefined,
    log,
    now: () => performance.now(),
  });
  const runStores = new Map<string, Store>();
  const loopDelay = watchLoopDelay();
  const ports = activityPorts(place, { openStore, dispatcher, watch, usage, feeds, fleet, runStores });
  void failOrphanedActivities(client, home, log).catch((error: unknown) =>
    log(`could not look for activities of the last control process: ${errorToJson(error).message}`),
  );
  const lines = collectLines(place, runStores, openStore);
  const worker = await createTemporalWorker(place, ports);
  const leaving = new AbortController();
  const { signal } = leaving;

  /** What makes one thing agree with the store each, until the process leaves. */
  const reconcile = (): Promise<unknown> => {
    const kept = { home, stack: ports.stack, client, openStore, log };
    return Promise.all([
      reconcileRuns({ ...kept, say: (runId, text) => ports.say(runId, 'warn', text) }, signal),
      reconcileSchedules({ ...kept, openScheduleLog: ports.schedules.openScheduleLog }, signal),
      reconcileJanitors({ home, client, log }, signal),
      writeMetricsFiles(kept, signal),
      reconcileFleet(kept, signal),
    ]);
  };

  return {
    leave() {
      leaving.abort();
      worker.shutdown();
    },
    async run() {
      const running = worker.run();
      watchRoom(home, log);
      void keepStack(home, signal, log);
      loopDelay.restart();
      feeds.open();
      announceReady();
      const reconciled = reconcile();
      await running;
      log(`event loop delay p99.9: ${loopDelay.p999Ms()} ms`);
      await reconciled;
      await usage.write();
      await client.connection.close();
      await lines.close();
      await system?.close();
      await nc.close();
    },
  };
}
