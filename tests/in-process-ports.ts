/** The ports of the activities in one process: those of a control process, without the queue, Temporal and a fleet. */
import type { ActivityPorts } from '../activities/index.ts';
import type { Store } from '../core/ports/store.ts';
import { examplePresence } from '../core/wire/examples.test-support.ts';
import type { Presence } from '../core/wire/messages.ts';
import { EventCounts } from '../infra/fleet/event-counts.ts';
import { jobIdOf } from '../infra/nats/jobs/dispatcher.ts';
import { endSweep } from '../log/retention/orphans.ts';
import { getBlob, getJsonBlob, putBlob, putJsonBlob } from '../log/objects/blobs.ts';
import { runStateOf } from '../log/objects/digest.ts';
import { batchToAdopt } from '../log/run/earlier-batches.ts';
import { findHole } from '../log/run/log-holes.ts';
import { needShards, putManifest } from '../log/objects/manifests.ts';
import { decide, recordText } from '../log/objects/records.ts';
import { RunLog } from '../log/run/run-log.ts';
import { standbyStart } from '../log/run/standby-start.ts';
import { appendStatus, pausesFor } from '../log/run/status.ts';
import { openNextTerm } from '../log/run/terms.ts';

const notHere = (): never => {
  throw new Error('an iteration in one process does not ask for this');
};

const sampler: Presence = { ...examplePresence, worker: 'sampler', roles: ['rollout'] };

/** `run`: runs a job; `say`: gets the lines that users see; `outside`: a worker samples that does not train. */
export function portsInProcess(
  store: Store,
  run: ActivityPorts['dispatcher']['run'],
  say: (line: string) => void,
  outside = false,
): ActivityPorts {
  return {
    process: 'test',
    stack: 'test',
    openStore: async () => store,
    drivesRun: async () => true,
    findHole,
    batchToAdopt,
    openNextTerm,
    standbyStart,
    admitWork: async () => {},
    openLog: (at, runId) => new RunLog(at, runId),
    events: new EventCounts(() => 0),
    committed: () => {},
    appendStatus,
    pausesFor,
    decide,
    recordText,
    runStateOf,
    putManifest,
    needShards,
    getBlob,
    putBlob,
    getJsonBlob,
    putJsonBlob,
    dispatcher: {
      run,
      settle: notHere,
      releaseLease: notHere,
      isWanted: () => false,
      untilWanted: async () => false,
      endTurn: notHere,
      servesWeights: () => false,
      announceWeights: () => {},
      cancelJobs: notHere,
      runResumed: () => {},
    },
    jobIdOf,
    listWorkers: async () => (outside ? [sampler] : []),
    schedules: {
      openScheduleLog: notHere,
      readModule: notHere,
      keepInputs: notHere,
      claimRun: notHere,
      writeRun: notHere,
      startRun: notHere,
      tellRun: notHere,
    },
    fleet: {
      provider: { launch: notHere, terminate: notHere, list: notHere, spotPrices: notHere, check: notHere },
      openFleet: notHere,
      prepareLaunch: notHere,
      observeRuns: notHere,
      pauseRun: notHere,
      tellToLeave: notHere,
      notePlan: notHere,
      noteTrouble: notHere,
      say: notHere,
    },
    say: (_, level, text) => say(`${level} ${text}`),
    live: () => {},
    endSweep,
    sweepStore: notHere,
    now: () => new Date(),
    beginAttempt: () => () => false,
    whileHeartbeating: (work) => work(new AbortController().signal),
  };
}
