/**
 * Reconciles the runs of this stack with their desired states, whatever was down when the user set them. The store is
 * the source of truth.
 *
 * Once a second, for each run:
 * - A run whose workflow is lost or stuck gets a new workflow, which reads the run's position from the store. This
 * happens when the Temporal database was lost, or when an older copy of it was restored.
 * - A workflow that does not know the desired state of its run gets a signal. Signals are lost when Temporal or the
 * whole stack is down, when another stack sets the desired state, when a command dies before it sends the signal, and
 * when an older Temporal database is restored.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import { errorToJson } from '../../core/errors.ts';
import type { Store } from '../../core/ports/store.ts';
import { drivenRuns } from '../../infra/stack/driven-runs.ts';
import type { NotedRun } from '../../infra/stack/driven-run.ts';
import { nameTaken } from '../../infra/stack/names.ts';
import { isPaidByRequest, rememberStore } from '../../infra/store/places.ts';
import { RunLog } from '../../log/run/run-log.ts';
import {
  endRunWorkflow,
  knownDesiredState,
  runningWorkflow,
  startRunWorkflow,
  tellRunWorkflow,
} from '../../infra/temporal/run-workflow.ts';
import type { RunningWorkflow } from '../../infra/temporal/run-workflow.ts';
import { Histories } from './histories.ts';
import { Reminders } from './reminders.ts';

/** How often the runs are compared with their workflows. */
const everyMs = 1_000;
/** One round in this many reads the desired state in a store that charges for requests. */
const paidRounds = 12;
/** How often it is checked that no other stack has taken this one's name. */
const nameRounds = { free: 5, paid: 60 };

export interface ReconcileRunsPorts {
  readonly home: string;
  /** Name of this stack. It does not start a workflow for a run that another stack has taken over. */
  readonly stack: string;
  readonly client: Client;
  readonly openStore: (url: string) => Promise<Store>;
  readonly say: (runId: string, text: string) => void;
  readonly log: (line: string) => void;
}

/**
 * Reconciles all runs until the signal is aborted. When a server or a store does not answer, the next round tries
 * again.
 */
export async function reconcileRuns(ports: ReconcileRunsPorts, signal: AbortSignal): Promise<void> {
  const reconciler = new RunReconciler(ports);
  for (let round = 0; !signal.aborted; round++) {
    await reconciler.reconcileAll(round);
    await delay(everyMs, undefined, { signal }).catch(() => undefined);
  }
}

/** The list of all runs, among the errors by run. */
const listed = '';

class RunReconciler {
  readonly #ports: ReconcileRunsPorts;
  readonly #histories = new Histories();
  readonly #reminders = new Reminders();
  /** Last error of each run, so that the same error is not logged every second. */
  readonly #errors = new Map<string, string>();
  /** Stores in which another stack has this one's name, with a sentence that says which. */
  readonly #lostNames = new Map<string, string>();

  constructor(ports: ReconcileRunsPorts) {
    this.#ports = ports;
  }

  /** Never rejects: when the list of runs cannot be read, the next round tries again. */
  async reconcileAll(round: number): Promise<void> {
    let runs: readonly NotedRun[];
    try {
      runs = await drivenRuns(this.#ports.home).all();
      this.#errors.delete(listed);
    } catch (error) {
      return this.#logOnce(listed, `the runs of this stack: ${errorToJson(error).message}`);
    }
    await Promise.all([...new Set(runs.map(({ store }) => store))].map((store) => this.#checkName(store, round)));
    await Promise.all(runs.map((run) => this.reconcile(run, round)));
  }

  async #checkName(url: string, round: number): Promise<void> {
    // A name that was lost is looked at in each round: its user may take it back and resume a run at once.
    const isDue = round % nameRounds[isPaidByRequest(url) ? 'paid' : 'free'] === 0;
    if (!isDue && !this.#lostNames.has(url)) return;
    try {
      // A run that was started on another machine of the stack: commands here find it.
      rememberStore(this.#ports.home, url);
      const taken = await nameTaken(this.#ports.home, await this.#ports.openStore(url));
      if (taken === undefined) this.#lostNames.delete(url);
      else this.#lostNames.set(url, `${taken.machine} has taken the name ${taken.name} in ${url} at ${taken.at}`);
    } catch (error) {
      this.#logOnce(url, `could not check the name of this stack in ${url}: ${errorToJson(error).message}`);
    }
  }

  /** Never rejects, because one run's error must not affect the other runs. */
  async reconcile(run: NotedRun, round: number): Promise<void> {
    try {
      const workflow = await runningWorkflow(this.#ports.client, run.runId);
      const lost = this.#lostNames.get(run.store);
      if (lost !== undefined) return await this.#giveUp(run, workflow, lost);
      const doubt = workflow === undefined ? 'its workflow was lost' : this.#histories.doubt(run.runId, workflow);
      if (doubt !== undefined) await this.#replace(run, workflow, doubt);
      else if (workflow !== undefined && (!isPaidByRequest(run.store) || round % paidRounds === 0))
        await this.#remind(run, workflow);
      this.#errors.delete(run.runId);
    } catch (error) {
      this.#logOnce(run.runId, `${run.runId}: could not compare it with its workflow: ${errorToJson(error).message}`);
    }
  }

  #logOnce(about: string, text: string): void {
    if (this.#errors.get(about) !== text) this.#ports.log(text);
    this.#errors.set(about, text);
  }

  /** Ends a stuck workflow, and starts a new one unless the run has ended. */
  async #replace(run: NotedRun, workflow: RunningWorkflow | undefined, doubt: string): Promise<void> {
    const { client, say } = this.#ports;
    // A living command is about to start the workflow. This is checked before the store is read, so that everything the
    // command wrote before its death is read.
    if (workflow === undefined && run.isStarting) return;
    // The store is read before the old workflow ends, so that the gap between the two workflows is short.
    const standing = await this.#standing(run);
    if (workflow !== undefined) {
      // Waiting for the workflow's next task could take minutes, and that task could be stuck again.
      await endRunWorkflow(client, run.runId, workflow.execution, doubt);
      this.#histories.ended(run.runId);
    }
    if (standing === 'over') return await this.#forget(run);
    await startRunWorkflow(client, { runId: run.runId, store: run.store }, run.kind);
    if (standing === 'started') say(run.runId, `${doubt}: restarted from the store`);
  }

  /** The stack that has taken this one's name drives the run from now on, when its user resumes it. */
  async #giveUp(run: NotedRun, workflow: RunningWorkflow | undefined, why: string): Promise<void> {
    const { client, say } = this.#ports;
    say(run.runId, `this stack stops driving this run: ${why}`);
    if (workflow !== undefined) await endRunWorkflow(client, run.runId, workflow.execution, why);
    await this.#forget(run);
  }

  /** Signals the desired state when the workflow does not know it. */
  async #remind(run: NotedRun, { execution }: RunningWorkflow): Promise<void> {
    const { client, openStore } = this.#ports;
    const status = await new RunLog(await openStore(run.store), run.runId).status.newest();
    if (status === undefined || !this.#reminders.isDue(run.runId, execution, status)) return;
    if ((await knownDesiredState(client, run.runId)) !== status.wish)
      await tellRunWorkflow(client, run.runId, status.wish);
    this.#reminders.done(run.runId, execution, status);
  }

  async #forget(run: NotedRun): Promise<void> {
    this.#histories.forget(run.runId);
    this.#reminders.forget(run.runId);
    await drivenRuns(this.#ports.home).forget(run);
  }

  /**
   * `over`: the run has ended, was removed, or belongs to another stack. `new`: it has no term yet, so its command is
   * starting it, or died before it could.
   */
  async #standing({ runId, store }: NotedRun): Promise<'over' | 'new' | 'started'> {
    const log = new RunLog(await this.#ports.openStore(store), runId);
    const status = await log.status.newest();
    if (status === undefined) await log.ensureThere();
    if (status === undefined || !['queued', 'running', 'paused'].includes(status.state)) return 'over';
    const term = await log.newestTerm();
    if (term === undefined) return 'new';
    return term.record.owner === this.#ports.stack ? 'started' : 'over';
  }
}
