/** The log lines of the runs that this control process drives, collected into their stores. */
import { errorToJson } from '../../core/errors.ts';
import type { Store } from '../../core/ports/store.ts';
import { drivenRuns } from '../../infra/stack/driven-runs.ts';
import { stackIdentity } from '../../infra/stack/identity.ts';
import { sharedStack } from '../../infra/stack/state.ts';
import { LogCollector } from '../../infra/telemetry/run-log-lines.ts';
import type { ControlPlace } from './place.ts';

/** `stores`: of the runs whose log this process has opened; others are found and added. */
export function collectLines(
  { home, instance, nc, log }: ControlPlace,
  stores: Map<string, Store>,
  openStore: (url: string) => Promise<Store>,
): LogCollector {
  const shared = sharedStack(home) !== undefined;
  const collector = {
    writer: `${instance}-${process.pid}`,
    instance,
    ...(shared && { queue: `logs-${stackIdentity(home).id}` }),
  };
  /** Another control process of the stack may have opened the log of a run whose lines come here. */
  const find = async (runId: string): Promise<void> => {
    const run = (await drivenRuns(home).all()).find((one) => one.runId === runId);
    if (run !== undefined) stores.set(runId, await openStore(run.store));
  };
  return new LogCollector(nc, collector, (runId) => {
    const store = stores.get(runId);
    // Its lines are kept until the next flush.
    if (store === undefined && shared) void find(runId).catch((error: unknown) => log(errorToJson(error).message));
    return store;
  });
}
