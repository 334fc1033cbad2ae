/**
 * The minimal cost of an iteration in this architecture: four no-op Temporal activities, three no-op JetStream jobs to
 * another process, and six fsynced creates, on the stack that the run used.
 */
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { once } from 'node:events';
import { bundleWorkflowCode, DefaultLogger, Runtime, Worker } from '@temporalio/worker';
import { builtFile } from '../../infra/home.ts';
import { connectNats } from '../../infra/nats/connection.ts';
import type { HasNats } from '../../infra/nats/connection.ts';
import { connectTemporalClient, connectTemporalWorker } from '../../infra/temporal/connection.ts';
import type { HasTemporal } from '../../infra/temporal/connection.ts';
import { bareActivities } from './activities.ts';
import { activitiesPerIteration, bareTaskQueue } from './names.ts';

/** Iterations whose time does not count, because connections and caches warm up. */
const warmUp = 5;

/** Milliseconds per iteration. `folder`: on the file system of the run's store. */
export async function bareLoopMs(stack: HasNats & HasTemporal, folder: string, iterations: number): Promise<number[]> {
  mkdirSync(folder, { recursive: true });
  Runtime.install({ logger: new DefaultLogger('WARN') });
  const responder = await startResponder(stack);
  const nc = await connectNats(stack, 'bench-bare');
  const plain = { temporal: { address: stack.temporal.address } }; // no encryption: it is not part of the minimum
  const client = await connectTemporalClient(plain);
  const connection = await connectTemporalWorker(plain);
  const clock = { startsMs: [] as number[] };
  try {
    const worker = await Worker.create({
      connection,
      taskQueue: bareTaskQueue,
      workflowBundle: await bundle(),
      activities: { ...bareActivities(nc, folder, clock) },
    });
    await worker.runUntil(
      client.workflow.execute('bareLoop', {
        taskQueue: bareTaskQueue,
        workflowId: `bare-${process.pid}`,
        args: [warmUp + iterations + 1, activitiesPerIteration],
      }),
    );
  } finally {
    responder.disconnect();
    await nc.close();
    await client.connection.close();
    await connection.close();
  }
  const starts = clock.startsMs.slice(warmUp);
  return starts.slice(1).map((start, i) => start - (starts[i] ?? start));
}

async function startResponder({ nats }: HasNats): Promise<ChildProcess> {
  const child = fork(builtFile('bench/bare/responder.js'), { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  child.send({ nats });
  const [said] = (await Promise.race([once(child, 'message'), once(child, 'exit')])) as [unknown];
  if (said !== 'ready') throw new Error(`the bare loop's worker ended with ${String(said)}`);
  return child;
}

function bundle() {
  return bundleWorkflowCode({ workflowsPath: builtFile('bench/bare/workflow.js'), logger: new DefaultLogger('WARN') });
}
