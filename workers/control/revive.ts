/**
 * A run whose workflow is gone or stuck (the database of the Temporal server was lost, or an older copy of it put back) is
 * started again: the store says that it is not over, and that is the truth.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { errorToJson } from '../../core/errors.ts';
import type { Store } from '../../core/ports.ts';
import { drivenRuns, forgetDrivenRun } from '../../infra/stack/driven-runs.ts';
import type { DrivenRun } from '../../infra/stack/driven-runs.ts';
import { RunLog } from '../../infra/store/run-log.ts';
import { endRunWorkflow, runningWorkflow, startRunWorkflow } from '../../infra/temporal/run-workflow.ts';
import { Histories } from './histories.ts';

/** How often it is looked whether every run has its workflow. */
const everyMs = 1_000;

export interface RevivePorts {
  readonly home: string;
  /** Name of this stack: a run that another one took over is that one's. */
  readonly stack: string;
  readonly client: Client;
  readonly openStore: (url: string) => Promise<Store>;
  readonly say: (runId: string, text: string) => void;
  readonly log: (line: string) => void;
}

/** Looks again and again until the signal. A server that is away is asked again. */
export async function keepRunsDriven(ports: RevivePorts, signal: AbortSignal): Promise<void> {
  const histories = new Histories();
  /** What was said of a run last: the same is not said again every second. */
  const said = new Map<string, string>();
  while (!signal.aborted) {
    for (const run of drivenRuns(ports.home)) {
      await revive(ports, histories, run).then(
        () => said.delete(run.runId),
        (error: unknown) => {
          const text = `${run.runId}: cannot tell whether it is driven: ${errorToJson(error).message}`;
          if (said.get(run.runId) !== text) ports.log(text);
          said.set(run.runId, text);
        },
      );
    }
    await delay(everyMs, undefined, { signal }).catch(() => undefined);
  }
}

async function revive(ports: RevivePorts, histories: Histories, run: DrivenRun): Promise<void> {
  const workflow = await runningWorkflow(ports.client, run.runId);
  const doubt = workflow === undefined ? 'its workflow was gone' : histories.doubt(run.runId, workflow);
  if (doubt === undefined) return;
  // Asked before it is ended: whoever waits for the run sees hardly a gap.
  const standing = await standingOf(ports, run);
  if (workflow !== undefined) {
    // Its next task might be handed out after minutes only, and then be stuck again.
    await endRunWorkflow(ports.client, run.runId, workflow.execution, doubt);
    histories.ended(run.runId);
  }
  if (standing === 'over') {
    histories.forget(run.runId);
    return forgetDrivenRun(ports.home, run.runId);
  }
  await startRunWorkflow(ports.client, { runId: run.runId, store: run.store }, run.kind);
  if (standing === 'begun') ports.say(run.runId, `${doubt}: started again from the store`);
}

/** `over`: it has ended, was removed, or belongs to another stack by now. `new`: whoever wrote it down starts it, or died before. */
async function standingOf(
  { openStore, stack }: RevivePorts,
  { runId, store }: DrivenRun,
): Promise<'over' | 'new' | 'begun'> {
  const log = new RunLog(await openStore(store), runId);
  const status = await log.status();
  if (status === undefined) await log.ensureThere();
  if (status === undefined || !['queued', 'running', 'paused'].includes(status.state)) return 'over';
  const term = await log.newestTerm();
  if (term === undefined) return 'new';
  return term.record.owner === stack ? 'begun' : 'over';
}
