/** A cluster of Slurm on this machine: one controller and one node, in a folder of the test. */
import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from '../infra/ports.ts';
import { poll } from '../infra/poll.ts';
import { patienceMs } from './patience.ts';

/** Slurm needs its daemons, and root, who may be any user. */
export const slurmIsHere =
  process.getuid?.() === 0 &&
  ['slurmctld', 'slurmd', 'sbatch'].every((name) => spawnSync(name, ['-V']).error === undefined);

export interface SlurmJob {
  /** An element of an array is named `ARRAY_ELEMENT`: the number of the last one names the whole array, too. */
  readonly id: string;
  readonly state: string;
  /** How often it was queued again. */
  readonly restarts: number;
}

const bounded = { everyMs: 100, timeoutMs: patienceMs };

export class SlurmUnderTest {
  readonly folder: string;
  readonly #daemons: readonly ChildProcess[];

  private constructor(folder: string, daemons: readonly ChildProcess[]) {
    this.folder = folder;
    this.#daemons = daemons;
  }

  /** `cpus`: processors of its node. Its partition `spot` is preempted by `first`, after a time of grace. */
  static async start(cpus: number): Promise<SlurmUnderTest> {
    const folder = mkdtempSync(join(tmpdir(), 'petrel-slurm-'));
    for (const name of ['state', 'spool', 'log']) mkdirSync(join(folder, name));
    const [controller, node] = (await freePorts(2)) as [number, number];
    writeFileSync(join(folder, 'slurm.conf'), confOf(folder, cpus, controller, node));
    const start = (name: string, words: readonly string[]) => {
      const log = openSync(join(folder, 'log', `${name}.out`), 'w');
      const env = { ...process.env, SLURM_CONF: join(folder, 'slurm.conf') };
      return spawn(name, ['-D', ...words], { env, stdio: ['ignore', log, log], detached: true });
    };
    const slurm = new SlurmUnderTest(folder, [start('slurmctld', []), start('slurmd', ['-N', 'here'])]);
    const isIdle = () => /idle/.test(slurm.#run('sinfo', ['--noheader', '--format=%T']).stdout);
    if ((await poll(isIdle, bounded)) === true) return slurm;
    const why = `${slurm.#log('slurmctld')}\n${slurm.#log('slurmd')}`;
    await slurm.stop();
    throw new Error(`Slurm did not start:\n${why}`);
  }

  /** Submits a batch script from a folder, with this environment and nothing else. Gives the job's id. */
  submit(words: readonly string[], cwd: string, env: NodeJS.ProcessEnv = {}): string {
    return this.command('sbatch', ['--parsable', ...words], cwd, env).trim();
  }

  /** Runs a command of Slurm and gives what it prints. */
  command(name: string, words: readonly string[], cwd = this.folder, env: NodeJS.ProcessEnv = {}): string {
    const { status, stdout, stderr } = this.#run(name, words, cwd, env);
    if (status !== 0) throw new Error(`${name} ${words.join(' ')}: ${stderr}`);
    return stdout;
  }

  /** The jobs that Slurm knows, by their ids. */
  jobs(): SlurmJob[] {
    const text = this.command('scontrol', ['show', 'jobs', '--oneliner']);
    return text.split('\n').flatMap((line) => {
      const of = (name: string) => new RegExp(`(?:^| )${name}=(\\S+)`).exec(line)?.[1];
      const [job, array] = [of('JobId'), of('ArrayJobId')];
      if (job === undefined) return [];
      const id = array === undefined ? job : `${array}_${of('ArrayTaskId')}`;
      return [{ id, state: of('JobState') ?? '', restarts: Number(of('Restarts')) }];
    });
  }

  /** A job that is queued again would wait for two minutes: it begins now. */
  async begin(id: string): Promise<void> {
    const begins = () => {
      this.#run('scontrol', ['update', `JobId=${id}`, 'StartTime=now']); // it may still be completing
      return this.jobs().some((job) => job.id === id && job.state === 'RUNNING');
    };
    if ((await poll(begins, bounded)) !== true) throw new Error(`job ${id} does not begin\n${this.#log('slurmctld')}`);
  }

  async is(id: string, state: string): Promise<void> {
    const found = () => this.jobs().find((job) => job.id === id)?.state;
    if ((await poll(() => found() === state, bounded)) !== true)
      throw new Error(`job ${id} is ${found()}, not ${state}\n${this.#log('slurmctld')}`);
  }

  /** Ends every job, and then Slurm. */
  async stop(): Promise<void> {
    this.#run('scancel', ['--full', '--signal=KILL', '--user=root']);
    await poll(() => this.#run('squeue', ['--noheader', '--states=running,completing']).stdout === '', bounded);
    for (const daemon of [...this.#daemons].reverse()) {
      if (daemon.exitCode !== null || daemon.signalCode !== null) continue;
      daemon.kill('SIGTERM');
      await once(daemon, 'exit');
    }
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 3 });
  }

  #run(name: string, words: readonly string[], cwd = this.folder, env: NodeJS.ProcessEnv = {}) {
    const own = { PATH: process.env['PATH'], HOME: cwd, SLURM_CONF: join(this.folder, 'slurm.conf') };
    return spawnSync(name, words, { cwd, env: { ...own, ...env }, encoding: 'utf8' });
  }

  #log(name: string): string {
    return readFileSync(join(this.folder, 'log', `${name}.out`), 'utf8').slice(-4_000);
  }
}

const confOf = (folder: string, cpus: number, controller: number, node: number): string => `
ClusterName=petrel
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=${controller}
SlurmdPort=${node}
SlurmUser=root
AuthType=auth/none
CredType=cred/none
StateSaveLocation=${folder}/state
SlurmdSpoolDir=${folder}/spool
SlurmctldPidFile=${folder}/slurmctld.pid
SlurmdPidFile=${folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerParameters=bf_interval=1,sched_interval=1
SlurmdParameters=config_overrides
KillWait=5
NodeName=here NodeHostname=localhost NodeAddr=127.0.0.1 CPUs=${cpus} State=UNKNOWN
PartitionName=spot Nodes=here Default=YES PriorityTier=1 PreemptMode=REQUEUE GraceTime=20 State=UP
PartitionName=first Nodes=here PriorityTier=10 PreemptMode=OFF State=UP
`;
