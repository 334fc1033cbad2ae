/** One supervised process: started or adopted, watched, restarted when it dies, stopped on demand. */
import { spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import { errorToJson } from '../../core/errors.ts';
import { poll } from '../poll.ts';
import { childEnv, fingerprint, predecessorVariable } from './child-spec.ts';
import type { ChildSpec } from './child-spec.ts';
import { openLog } from './logs.ts';
import { identify, isAlive, signalGroup, terminate } from './process.ts';
import type { ProcessIdentity } from './process.ts';
import type { ChildState } from './state.ts';

/**
 * The first death is followed by an immediate restart. After that, pauses double until a process has lived for
 * `settledMs`. A process that had been ready was killed rather than broken and work waits for it, so its pauses stay
 * short.
 */
const backoff = { firstMs: 100, longestMs: 10_000, longestOnceReadyMs: 400, settledMs: 10_000 } as const;
const readyPollMs = 25;
const adoptedPollMs = 100;

export interface ChildHooks {
  /** Called after every change of the child's state. */
  readonly changed: () => void;
  /** Called when the process ended unexpectedly; processes that it started may still live. */
  readonly ended: () => void;
  readonly log: (line: string) => void;
}

export class Child {
  readonly name: string;
  readonly #home: string;
  readonly #plan: () => Promise<ChildSpec>;
  readonly #hooks: ChildHooks;

  #spec: ChildSpec;
  /** Fingerprint of the started process, which may be an older build than the current spec. */
  #fingerprint: string;
  #process: ProcessIdentity | undefined;
  #state: ChildState['state'] = 'stopped';
  #stopping = false;
  #bornMs = 0;
  #restarts = 0;
  /** Deaths in a row without ever being ready; deaths in a row without settling. */
  #failures = 0;
  #unsettled = 0;
  #lastExit: string | undefined;
  #notYet: string | undefined;
  #restartTimer: NodeJS.Timeout | undefined;

  /** `plan` is called before each start, because ports may have to change. `spec` is its first result. */
  constructor(home: string, spec: ChildSpec, plan: () => Promise<ChildSpec>, hooks: ChildHooks) {
    this.name = spec.name;
    this.#home = home;
    this.#spec = spec;
    this.#fingerprint = fingerprint(spec);
    this.#plan = plan;
    this.#hooks = hooks;
  }

  get kind(): ChildSpec['kind'] {
    return this.#spec.kind;
  }

  get process(): ProcessIdentity | undefined {
    return this.#process;
  }

  get state(): ChildState {
    return {
      name: this.name,
      kind: this.kind,
      state: this.#state,
      ...this.#process,
      fingerprint: this.#fingerprint,
      restarts: this.#restarts,
      failures: this.#failures,
      ...(this.#lastExit === undefined ? {} : { lastExit: this.#lastExit }),
      ...(this.#state === 'starting' && this.#notYet !== undefined && { notYet: this.#notYet }),
    };
  }

  /** Resolves when the process exists. `untilReady` waits until it is ready. */
  async start(): Promise<void> {
    try {
      this.#spec = await this.#plan();
      if (this.#stopping) return;
      this.#fingerprint = fingerprint(this.#spec);
      this.#spec.prepare?.();
      this.#spawn();
    } catch (error) {
      this.#died(`could not be started: ${errorToJson(error).message}`);
    }
  }

  /**
   * Takes over a process that an earlier supervisor started. The exit of a process that is not our child sends no
   * event, so it is polled.
   */
  adopt(process: ProcessIdentity, restarts: number): void {
    this.#restarts = restarts;
    this.#hooks.log(`${this.name}: adopted process ${process.pid}`);
    this.#begin(process);
    void poll(() => !isAlive(process), { everyMs: adoptedPollMs, timeoutMs: Infinity }).then(() =>
      this.#exited(process, 'ended'),
    );
  }

  /** Resolves with true once the child is ready, with false after the timeout or when it is being stopped. */
  async untilReady(timeoutMs: number): Promise<boolean> {
    const ready = await poll(() => this.#state === 'ready' || this.#stopping, { everyMs: readyPollMs, timeoutMs });
    return ready === true && !this.#stopping;
  }

  /** SIGTERM, a grace period, SIGKILL. Resolves when the process is gone; it is not restarted. */
  async stop(): Promise<void> {
    this.#stopping = true;
    clearTimeout(this.#restartTimer);
    if (this.#process) {
      this.#become('stopping');
      await terminate(this.#process, this.#spec.stopGraceMs);
      signalGroup(this.#process.pid, 'SIGKILL'); // its remaining children
      this.#process = undefined;
    }
    this.#become('stopped');
  }

  /** Restarts the process, for instance because a port that it was given has changed. */
  async replace(): Promise<void> {
    await this.stop();
    this.#stopping = false;
    this.#failures = 0; // of a start with other settings
    await this.start();
  }

  /** Restarts a process that runs but does not serve, for instance a server after a full disk. */
  async replaceIfStuck(): Promise<void> {
    const why = this.#state === 'ready' ? await this.#spec.isStuck?.() : undefined;
    if (why === undefined || this.#state !== 'ready') return;
    this.#hooks.log(`${this.name}: restarting, because it reports: ${why.trim()}`);
    await this.stop();
    this.#spec.repair?.();
    this.#restarts += 1;
    this.#stopping = false;
    await this.start();
  }

  #spawn(): void {
    const log = openLog(this.#home, this.name);
    try {
      const child = spawn(this.#spec.command, this.#spec.args, {
        env: { ...childEnv(this.#home, this.#spec), [predecessorVariable]: this.#lastExit },
        stdio: ['ignore', log, log],
        detached: true, // its own process group, so that Ctrl-C in the shell does not reach it
      });
      child.once('error', (error) => {
        if (child.pid === undefined) this.#died(`could not be started: ${error.message}`);
      });
      if (child.pid === undefined) return; // the 'error' event gives the reason
      const process = identify(child.pid);
      child.once('exit', (code, signal) => this.#exited(process, signal ?? `exit code ${code}`));
      if (process) this.#begin(process);
    } finally {
      closeSync(log);
    }
  }

  #begin(process: ProcessIdentity): void {
    this.#process = process;
    this.#bornMs = performance.now();
    this.#become('starting');
    void this.#awaitReadiness(process);
  }

  async #awaitReadiness(process: ProcessIdentity): Promise<void> {
    const current = (): boolean => this.#process === process && this.#state === 'starting';
    const ready = await poll(async () => !current() || (await this.#isReady(process)), {
      everyMs: readyPollMs,
      timeoutMs: this.#spec.readyTimeoutMs,
    });
    if (!current()) return;
    if (ready) {
      this.#failures = 0;
      this.#hooks.log(`${this.name}: ready after ${Math.round(performance.now() - this.#bornMs)} ms`);
      this.#become('ready');
    } else {
      const why = this.#notYet === undefined ? '' : `: ${this.#notYet}`;
      this.#hooks.log(`${this.name}: not ready after ${this.#spec.readyTimeoutMs} ms; killed${why}`);
      signalGroup(process.pid, 'SIGKILL');
    }
  }

  /** Publishes why not, for whoever waits for the stack. */
  async #isReady(process: ProcessIdentity): Promise<boolean> {
    const answer = await this.#spec.isReady(process);
    const why = typeof answer === 'string' ? answer : undefined;
    if (why !== this.#notYet) {
      this.#notYet = why;
      this.#hooks.changed();
    }
    return answer === true;
  }

  #exited(process: ProcessIdentity | undefined, how: string): void {
    if (this.#process !== process && process !== undefined) return;
    if (process) signalGroup(process.pid, 'SIGKILL'); // its remaining children
    if (this.#stopping) return;
    this.#died(how);
    this.#hooks.ended();
  }

  #died(how: string): void {
    const served = this.#state === 'ready';
    if (!served) this.#failures += 1;
    const lived = this.#process ? performance.now() - this.#bornMs : 0;
    this.#unsettled = lived >= backoff.settledMs ? 0 : this.#unsettled + 1;
    this.#lastExit = how;
    this.#process = undefined;
    const pauseMs =
      this.#unsettled <= 1
        ? 0
        : Math.min(
            backoff.firstMs * 2 ** (this.#unsettled - 2),
            served ? backoff.longestOnceReadyMs : backoff.longestMs,
          );
    this.#hooks.log(`${this.name}: ${how}; restarting ${pauseMs === 0 ? 'at once' : `in ${pauseMs} ms`}`);
    this.#become('waiting');
    this.#restartTimer = setTimeout(() => {
      this.#restarts += 1;
      void this.start();
    }, pauseMs);
  }

  #become(state: ChildState['state']): void {
    this.#state = state;
    this.#hooks.changed();
  }
}
