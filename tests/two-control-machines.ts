/**
 * Two control machines of one stack, for tests: two homes with one stack.yaml, a cluster of three NATS servers and a
 * Temporal server of others, and one store. Each machine has a supervisor, a control process and workers of its own.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { chooseStack, ensureStack, stopStack } from '../infra/stack/index.ts';
import { processesWith, signalProcess, waitForExit } from '../infra/stack/process.ts';
import { openStore } from '../infra/store/open.ts';
import { RunLog } from '../log/run/run-log.ts';
import { connectTemporalClient } from '../infra/temporal/connection.ts';
import { runWords } from './cli.ts';
import { LoopUnderTest, separatePools } from './loop-under-test.ts';
import type { StartedRun } from './loop-under-test.ts';
import { startNatsCluster } from './nats-cluster.ts';
import type { NatsCluster } from './nats-cluster.ts';
import { startTemporal, temporaryHome } from './servers.ts';
import { patienceMs } from './patience.ts';

const key = 'c0ffee00'.repeat(8);
/** Long enough for a command in its middle. */
export const longRecipe = {
  actor: { ppo_mini_batch_size: 2, ppo_epochs: 20 },
  trainer: { total_training_steps: 10, save_freq: 2 },
};

export class TwoControlMachines {
  readonly #place = temporaryHome();
  readonly first = temporaryHome();
  /** A namespace of the Temporal server besides the stack's. */
  readonly rival = 'rival';
  /** The second machine. Its loop looks at runs and stops the stack in the end. */
  readonly loop: LoopUnderTest;
  readonly #store: string;
  #cluster: NatsCluster | undefined;
  #temporal: Awaited<ReturnType<typeof startTemporal>> | undefined;

  /** `store`: its URL; default: a folder. */
  constructor(store?: string) {
    this.#store = store ?? join(this.#place.home, 'runs');
    this.loop = new LoopUnderTest(this.#store);
  }

  async up(): Promise<void> {
    this.#cluster = await startNatsCluster();
    this.#temporal = await startTemporal(join(this.#place.home, 'temporal'));
    const client = await connectTemporalClient(this.#temporal);
    const workflowExecutionRetentionPeriod = { seconds: 86_400 as never };
    await client.workflowService.registerNamespace({ namespace: this.rival, workflowExecutionRetentionPeriod });
    await client.connection.close();
    for (const home of [this.first.home, this.loop.home]) {
      this.writeStackFile(home);
      await chooseStack(home);
    }
    await this.loop.up(separatePools);
    await ensureStack({ home: this.first.home, workers: separatePools });
  }

  async remove(): Promise<void> {
    await stopStack(this.first.home);
    await this.loop.remove();
    await Promise.all([this.#cluster?.stop(), this.#temporal?.stop()]);
    this.first.remove();
    this.#place.remove();
  }

  writeStackFile(home: string, { secret = key, namespace = 'default' } = {}): void {
    const [cluster, temporal] = [this.#cluster, this.#temporal];
    if (cluster === undefined || temporal === undefined) throw new Error('up() comes first');
    writeFileSync(join(home, 'stack.key'), `${secret}\n`);
    writeFileSync(
      join(home, 'stack.yaml'),
      `name: team
store: ${this.#store}
key: stack.key
temporal: { address: "${temporal.temporal.address}", namespace: ${namespace} }
nats:
  urls: [${cluster.urls.map((url) => `"${url}"`).join(', ')}]
  credentials: ${cluster.credentials}
  system_credentials: ${cluster.systemCredentials}
`,
    );
  }

  readonly there = (...words: string[]) => runWords(this.first.home, words);
  readonly here = (...words: string[]) => runWords(this.loop.home, words);

  /** Started by a command of the first machine. */
  async startedThere(name: string): Promise<StartedRun> {
    const words = ['run', this.loop.recipeFile(name, longRecipe), '--detach', '--json'];
    const { runId } = (await this.there(...words)).json<{ runId: string }>();
    const run = { runId, log: new RunLog(await openStore(this.#store), runId) };
    this.loop.runs.add(run);
    return run;
  }
}

/** SIGKILL for every process of the home, as when the machine vanishes. */
export async function vanish(home: string): Promise<void> {
  // Each process of a stack starts a dead supervisor again, and one that has just begun is not yet found: looks twice.
  for (let empty = 0; empty < 2; ) {
    const left = processesWith('PETREL_HOME', home);
    for (const one of left) signalProcess(one, 'SIGKILL');
    await Promise.all(left.map((one) => waitForExit(one, patienceMs)));
    empty = left.length === 0 ? empty + 1 : 0;
  }
}
