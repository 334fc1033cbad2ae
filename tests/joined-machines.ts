/** Machines that join the stack of a test, each with a home of its own inside the test's. */
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { MachineStatus } from '../api/runs/machine-status.ts';
import type { EngineEnvironmentName } from '../core/engines.ts';
import type { JoinFile } from '../core/wire/join.ts';
import type { Gpu } from '../core/machine-needs.ts';
import { keys } from '../core/records/keys.ts';
import { resultRecord } from '../core/records/schema.ts';
import type { Role } from '../core/roles.ts';
import { packageRoot, petrelHome } from '../infra/home.ts';
import { freePorts } from '../infra/ports.ts';
import { poll } from '../infra/poll.ts';
import { ensureStack } from '../infra/stack/index.ts';
import type { WorkerPool } from '../infra/stack/index.ts';
import { needRecord } from '../log/objects/records.ts';
import { runWords } from './cli.ts';
import { startCutProxy } from './cut-proxy.ts';
import type { CutProxy, LongLink } from './cut-proxy.ts';
import { startMachine } from './joined-machine.ts';
import type { JoinedMachine } from './joined-machine.ts';
import type { LoopUnderTest, StartedRun } from './loop-under-test.ts';
import { patienceMs } from './patience.ts';

export interface Joining {
  /** Default: rollout and reward. */
  readonly roles?: readonly Role[];
  /** GPUs that it says it has. */
  readonly gpus?: readonly Gpu[];
  /** Engines that it installs, unless the home of the tests has them, whose installations it finds in its own. */
  readonly engines?: readonly EngineEnvironmentName[];
  /** Tokens that it samples in a second. Default: as many as it can. */
  readonly tokensPerSecond?: number;
  /** Its way to the message server. Default: none but loopback. */
  readonly link?: LongLink;
}

export class JoinedMachines {
  readonly #loop: LoopUnderTest;
  readonly #machines: JoinedMachine[] = [];
  readonly #proxies: CutProxy[] = [];
  #homes = 0;

  constructor(loop: LoopUnderTest) {
    this.#loop = loop;
  }

  /** The loop's stack, which listens for them, with these workers of its own. */
  async up(workers: readonly WorkerPool[]): Promise<void> {
    const [port] = (await freePorts(1)) as [number];
    await ensureStack({ home: this.#loop.home, workers, listen: { host: '127.0.0.1', port } });
    await this.#loop.up(workers);
  }

  /** A machine begins to join this pool. */
  async join(
    pool: string,
    { roles, gpus, engines, tokensPerSecond: pace, link }: Joining = {},
  ): Promise<JoinedMachine> {
    const given = [
      ...(roles === undefined ? [] : ['--roles', roles.join(',')]),
      ...(engines === undefined ? [] : ['--engines', engines.join(',')]),
    ];
    const words = ['fleet', 'token', '--pool', pool, ...given, '--json'];
    const file = (await runWords(this.#loop.home, words)).json<JoinFile>();
    const home = join(this.#loop.home, `machine-${++this.#homes}`);
    mkdirSync(home, { mode: 0o700 });
    if (engines !== undefined) {
      mkdirSync(join(home, '.petrel'), { mode: 0o700 });
      symlinkSync(join(petrelHome(), 'engines'), join(home, '.petrel/engines'));
    }
    writeFileSync(join(home, 'join.json'), JSON.stringify(link === undefined ? file : await this.#behind(file, link)));
    const program = [join(packageRoot(), 'cli/bin.mjs'), 'worker', '--join', join(home, 'join.json'), '--threads', '1'];
    const env = {
      ...(gpus !== undefined && { PETREL_PLAYED_GPUS: JSON.stringify(gpus) }),
      ...(pace !== undefined && { PETREL_PACE: String(pace) }),
    };
    const machine = startMachine({ home, words: program, env });
    this.#machines.push(machine);
    return machine;
  }

  async #behind(file: JoinFile, link: LongLink): Promise<JoinFile> {
    const proxy = await startCutProxy(Number(new URL(file.nats.url).port), link);
    this.#proxies.push(proxy);
    return { ...file, nats: { ...file.nats, url: `nats://127.0.0.1:${proxy.port}` } };
  }

  /** Resolves when each of these pools has a machine that takes jobs. */
  async areThere(...pools: readonly string[]): Promise<void> {
    for (const pool of pools) {
      const isThere = async () =>
        (await runWords(this.#loop.home, ['status', '--json']))
          .json<MachineStatus>()
          .workers.some(({ instance, state }) => instance.startsWith(`${pool}-`) && /^(ready|busy)$/.test(state));
      if ((await poll(isThere, { everyMs: 50, timeoutMs: patienceMs })) !== true)
        throw new Error(`no machine of ${pool} takes jobs:\n${this.#machines.map(({ said }) => said()).join('\n')}`);
    }
  }

  /** Ends all that are there. */
  async remove(): Promise<void> {
    for (const machine of this.#machines.splice(0)) await machine.kill();
    for (const proxy of this.#proxies.splice(0)) await proxy.close();
  }
}

/** The name under which a machine has joined; undefined: it has not yet. */
export const instanceOf = ({ said }: JoinedMachine): string | undefined =>
  /joined \S+ as ([a-z0-9-]+-[0-9a-f]{12})/.exec(said())?.[1];

/** The processes that computed the run's updates. */
export async function updatersOf({ store }: LoopUnderTest, { runId }: StartedRun): Promise<ReadonlySet<string>> {
  const writers = new Set<string>();
  for (const name of await store.children(keys.results(runId))) {
    const { record } = await needRecord(store, keys.results(runId) + name, resultRecord);
    if (record.stage === 'update') writers.add(record.writer.process);
  }
  return writers;
}
