/** Event-loop delay of the stack's own processes since their start, as they report it. */
import { readFileSync } from 'node:fs';
import { connectNats } from '../../infra/nats/connection.ts';
import { listWorkers } from '../../infra/nats/jobs/presence.ts';
import { stopStack } from '../../infra/stack/index.ts';
import type { StackInfo } from '../../infra/stack/index.ts';
import { logFile } from '../../infra/stack/logs.ts';

/** The 99.9th percentile in ms, of the worst worker. The stack must be up. */
export async function workerLoopDelay(stack: StackInfo): Promise<number> {
  const nc = await connectNats(stack, 'bench');
  try {
    return Math.max(...(await listWorkers(nc)).map(({ loopDelayMs }) => loopDelayMs));
  } finally {
    await nc.close();
  }
}

/** The control process reports it when it exits, so this stops the stack. */
export async function controlLoopDelay(home: string): Promise<number> {
  await stopStack(home);
  const told = [...readFileSync(logFile(home, 'control'), 'utf8').matchAll(/event loop delay p99\.9: ([\d.]+) ms/g)];
  return Number(told.at(-1)?.[1] ?? Number.NaN);
}
