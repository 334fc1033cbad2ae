/** The control process's side of the fleet (activities/fleet): what its pass sees of the runs, and who may join. */
import { randomBytes } from 'node:crypto';
import type { Client } from '@temporalio/client';
import type { NatsConnection } from '@nats-io/nats-core';
import type { FleetPorts } from '../../activities/fleet/index.ts';
import type { LaunchFacts } from '../../activities/ports/fleet.ts';
import { errorToJson, InvalidInputError, PauseError, RetryableError, TerminalError } from '../../core/errors.ts';
import { billOfFleet } from '../../core/fleet/bill.ts';
import { charges, sumsBy } from '../../core/fleet/cost.ts';
import type { ObservedRun } from '../../core/fleet/demand.ts';
import type { Provider } from '../../core/ports/provider.ts';
import type { Store } from '../../core/ports/store.ts';
import { parseStoredRecipe, totalIterations, trainedTogether } from '../../core/recipe/index.ts';
import { samplesResponses } from '../../core/run-kinds.ts';
import { endedStates } from '../../core/run-states.ts';
import { launchToken, leaveNowSubject } from '../../core/wire/join.ts';
import { wireVersion } from '../../core/wire/messages.ts';
import { bootScript } from '../../infra/fleet/boot-script.ts';
import { newJoinFile } from '../../infra/fleet/join-file.ts';
import type { BoughtMachine } from '../../infra/nats/access/join-office.ts';
import { drivenRuns } from '../../infra/stack/driven-runs.ts';
import { fleetStore, lastPlan, notePlan } from '../../infra/stack/fleet-notes.ts';
import { instanceName } from '../../infra/stack/identity.ts';
import { readStack } from '../../infra/stack/index.ts';
import { readEndpoints } from '../../infra/stack/state.ts';
import { digestOf } from '../../log/objects/digest.ts';
import { FleetLog } from '../../log/fleet/fleet-log.ts';
import { historiesOf } from '../../log/fleet/fleet-histories.ts';
import { RunLog } from '../../log/run/run-log.ts';
import { appendStatus } from '../../log/run/status.ts';
import { startFleetWorkflow } from '../../infra/temporal/fleet-workflow.ts';
import { tellRunWorkflow } from '../../infra/temporal/run-workflow.ts';

export interface FleetPlace {
  readonly home: string;
  readonly stack: string;
  readonly provider: Provider;
  readonly nc: NatsConnection;
  readonly client: Client;
  readonly log: (line: string) => void;
  readonly say: (runId: string, text: string) => void;
  /** A machine is told to leave because it is not needed. */
  readonly givenBack: (instance: string) => void;
}

export class ControlFleet {
  readonly #place: FleetPlace;
  readonly #logs = new Map<string, FleetLog>();
  readonly #runs = new Map<string, RunLog>();
  /** Bought machines that have joined, by their names in NATS, whose workers have not been seen yet. */
  readonly #admitted = new Map<string, { readonly log: FleetLog; readonly id: string }>();

  constructor(place: FleetPlace) {
    this.#place = place;
  }

  open(store: Store): FleetLog {
    const log = this.#logs.get(store.place) ?? new FleetLog(store, this.#place.stack);
    this.#logs.set(store.place, log);
    return log;
  }

  /** A machine's connection has closed: the fleet looks at once, because it may have to replace it. */
  lost(instance: string): void {
    const { home, client, log } = this.#place;
    const store = fleetStore(home);
    if (store === undefined || instance === instanceName(home)) return;
    void startFleetWorkflow(client, store).catch((error: unknown) =>
      log(`fleet: could not be told of a loss, and looks within seconds: ${errorToJson(error).message}`),
    );
  }

  /** A machine's worker has announced itself: an instance that was bought has booted. */
  came(instance: string): void {
    const id = this.#admitted.get(instance);
    if (id === undefined) return;
    const { log } = this.#place;
    this.#admitted.delete(instance);
    // When this fails, the next pass of the keeper records it.
    void id.log
      .noteReady({ id: id.id, at: new Date().toISOString() })
      .catch((error: unknown) =>
        log(`fleet: ${id.id} is ready, and that is not recorded: ${errorToJson(error).message}`),
      );
  }

  get ports(): FleetPorts {
    const { home, provider, nc, client, log, say, givenBack } = this.#place;
    return {
      provider,
      openFleet: (store) => this.open(store),
      prepareLaunch: async ({ store, expires, region, ...launched }) => {
        const { pool, launch } = launched;
        const nonce = randomBytes(16).toString('hex');
        const token = await this.#token({ ...launched, nonce, store });
        const userData = await bootScript({ token, store, region, expires });
        return { nonce, userData, token: digestOf({ store: store.place, stack: this.#place.stack, pool, launch }) };
      },
      observeRuns: (store) => this.#observeRuns(store),
      pauseRun: async (store, run, because) => {
        const reason = new PauseError('BudgetSpent', because, {
          where: 'fleet.budget_usd',
          hint: `raise the budget: petrel resume ${run} fleet.budget_usd=<USD>`,
        });
        await appendStatus(new RunLog(store, run), { wish: 'pause', reason }, new Date());
        await tellRunWorkflow(client, run, 'pause');
        say(run, `paused: ${because}`);
      },
      tellToLeave: (instance) => {
        givenBack(instance);
        nc.publish(leaveNowSubject(instance), JSON.stringify({ v: wireVersion }));
      },
      notePlan: (plan) => notePlan(home, plan),
      noteTrouble: (because) => {
        const before = lastPlan(home) ?? { decisions: [], reasons: [], pauses: [], prices: [], stopped: [] };
        notePlan(home, { ...before, at: new Date().toISOString(), notes: [`the last pass has failed: ${because}`] });
      },
      say: (text) => {
        log(`fleet: ${text}`);
        void drivenRuns(home)
          .all()
          .then((runs) => runs.forEach(({ runId }) => say(runId, `fleet: ${text}`)))
          .catch((error: unknown) => log(`the runs of this stack: ${errorToJson(error).message}`));
      },
    };
  }

  async #token({
    pool,
    roles,
    launch,
    nonce,
    store,
    joinUntil,
    lonelySeconds,
    ownScorers,
    engines,
  }: Omit<LaunchFacts, 'region' | 'expires'> & { readonly nonce: string }) {
    const { home, stack } = this.#place;
    const account = readEndpoints(home)?.nats?.authority.workers;
    const { url, ca } = readStack(home)?.nats ?? {};
    if (account === undefined || url === undefined || ca === undefined)
      throw new InvalidInputError(
        'expected a stack that bought machines can reach, got one that listens on this machine only',
        {
          hint: 'petrel up --listen ADDRESS, with an address at which the machines reach this one',
        },
      );
    const nats = { url, ca };
    const id = launchToken(launch);
    return newJoinFile({
      account,
      id,
      nonce,
      lonelySeconds,
      ...(ownScorers === 'open' && { ownScorers }),
      ...(engines !== undefined && { engines }),
      pool,
      roles: [...roles],
      stack,
      store: store.url,
      nats,
      expiresAt: new Date(joinUntil),
    });
  }

  async #observeRuns(store: Store): Promise<ObservedRun[]> {
    const driven = await drivenRuns(this.#place.home).all();
    const runs = driven.filter((run) => run.store === store.url);
    const seen = await Promise.all(runs.map(({ runId }) => this.#observe(store, runId)));
    const found = seen.flatMap((one) => one ?? []);
    if (found.every(({ budgetUsd }) => budgetUsd === null)) return found;
    const spent = await this.#spentMicroUsd(store);
    return found.map((one) => ({ ...one, spentUsd: (spent.get(one.run) ?? 0) / 1e6 }));
  }

  /** undefined for a run that is not to go on. */
  async #observe(store: Store, runId: string): Promise<ObservedRun | undefined> {
    const log = this.#runs.get(runId) ?? new RunLog(store, runId);
    this.#runs.set(runId, log);
    const status = await log.status.newest();
    if (status === undefined || endedStates.has(status.state) || status.state === 'paused') {
      if (status !== undefined) this.#runs.delete(runId);
      return undefined;
    }
    // A run that pauses ends its iteration first, and needs workers for that, whatever is left of its budget.
    const isPausing = status.wish === 'pause' && status.state === 'running';
    if (status.wish !== 'run' && !isPausing) return undefined;
    const { recipe: stored, inputs } = await log.revision();
    const recipe = parseStoredRecipe(stored);
    const head = await log.head();
    const position = head?.position ?? 0;
    const { budget_usd: budgetUsd, deadline, priority } = recipe.fleet;
    const last = head === undefined || position <= (await log.first()) ? undefined : await lastTimes(log, position);
    return {
      ...{ samples: samplesResponses(recipe.kind), needs: recipe.fleet.needs },
      trainers: trainedTogether(recipe).length + recipe.trainer.standby,
      ...{ run: runId, position, left: totalIterations(recipe, inputs.trainRows) - position },
      ...(isPausing ? { budgetUsd: null, deadline: null } : { budgetUsd, deadline }),
      ...{ priority, spentUsd: 0 },
      ...(last && { last }),
    };
  }

  async #spentMicroUsd(store: Store): Promise<ReadonlyMap<string, number>> {
    const log = this.open(store);
    const bill = billOfFleet(historiesOf(await log.instances()), await log.usage(), Date.now() / 1_000);
    return sumsBy(charges(bill.instances, bill.spans), 'run');
  }

  /** Throws TerminalError `NotBought`, and RetryableError `NotYet`. */
  async admit(machine: BoughtMachine, store: Store): Promise<void> {
    const { pool, launch, bought, key, instance } = machine;
    const log = this.open(store);
    log.refresh(); // another control process may have bought it
    const found = (await log.launches(pool)).find(({ record }) => record.n === launch);
    const refuse = (message: string): never => {
      throw new TerminalError('NotBought', message, {
        hint: 'petrel fleet ls on the control machine shows what was bought',
      });
    };
    if (found === undefined || bought === undefined || bought.nonce !== found.record.nonce)
      return refuse(`expected a machine of launch ${launch} of the pool ${pool}, got one that cannot show that it is`);
    if (found.answer === undefined)
      throw new RetryableError('NotYet', `launch ${launch} of the pool ${pool} is not answered yet`);
    if (found.answer.instances.every(({ id }) => id !== bought.id))
      return refuse(`expected an instance of launch ${launch} of the pool ${pool}, got ${bought.id}`);
    const { key: first } = await log.noteJoined({ id: bought.id, at: new Date().toISOString(), key, instance });
    if (first !== key) return refuse(`${bought.id} has joined with another key`);
    this.#admitted.set(instance, { log, id: bought.id });
  }
}

async function lastTimes(log: RunLog, position: number): Promise<ObservedRun['last']> {
  const { batch, update } = await log.iteration(position);
  const rolloutSeconds = Number(batch.record.timings['timing_s/gen']);
  const stepSeconds = Number(update.record.timings['timing_s/step']);
  return rolloutSeconds > 0 && stepSeconds >= rolloutSeconds ? { rolloutSeconds, stepSeconds } : undefined;
}
