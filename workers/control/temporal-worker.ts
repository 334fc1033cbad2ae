/** The Temporal worker of a control process: workflows, and the activities of its ports. */
import { readFile } from 'node:fs/promises';
import { Worker } from '@temporalio/worker';
import { createActivities } from '../../activities/index.ts';
import type { ActivityPorts } from '../../activities/index.ts';
import { taskQueue } from '../../core/wire/workflow.ts';
import { buildId, builtFile } from '../../infra/home.ts';
import { connectTemporalWorker, dataConverterOf } from '../../infra/temporal/connection.ts';
import { mapActivityErrors } from './activity-errors.ts';
import { temporalIdentity } from './orphaned-activities.ts';
import type { ControlPlace } from './place.ts';

export async function createTemporalWorker({ stack, instance }: ControlPlace, ports: ActivityPorts): Promise<Worker> {
  return Worker.create({
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
}
