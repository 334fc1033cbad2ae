/** The processes that play workers. */
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Role } from '../../core/roles.ts';
import { stackVariable } from '../../infra/stack/child-spec.ts';
import { stackFile } from '../../infra/stack/state.ts';
import type { FromPlayer, PlayerSettings, ToPlayer } from './protocol.ts';

type Started = Extract<FromPlayer, { type: 'started' }>;

const startPatienceMs = 60_000;
/** Workers of one process. */
const workersAtMost = 50;

export class Players {
  readonly starts: Started[] = [];
  readonly #home: string;
  readonly #common: Pick<PlayerSettings, 'store' | 'recordingFile'>;
  readonly #processes = new Set<ChildProcess>();
  /** What the players say. */
  readonly #log: number;
  #onStart: (started: Started) => void = () => {};
  /** Rejects when a player ends that nobody has ended. */
  readonly failed: Promise<never>;
  #fail: (error: Error) => void = () => {};

  constructor(home: string, common: Pick<PlayerSettings, 'store' | 'recordingFile'>) {
    this.#home = home;
    this.#common = common;
    this.#log = openSync(join(home, 'players.log'), 'a');
    this.failed = new Promise((_, reject) => (this.#fail = reject));
    this.failed.catch(() => undefined);
  }

  /** Resolves when all of them pull. */
  async add(prefix: string, workers: number, roles: readonly Role[]): Promise<void> {
    const counts: number[] = [];
    for (let left = workers; left > 0; left -= workersAtMost) counts.push(Math.min(left, workersAtMost));
    for (const [i, count] of counts.entries()) await this.addProcess(`${prefix}${i}`, count, roles);
  }

  async addProcess(prefix: string, workers: number, roles: readonly Role[]): Promise<ChildProcess> {
    const settings: PlayerSettings = { ...this.#common, prefix, workers, roles, seed: 1_000 * this.#processes.size };
    const player = fork(fileURLToPath(new URL('./player.js', import.meta.url)), [JSON.stringify(settings)], {
      env: { ...process.env, PETREL_HOME: this.#home, [stackVariable]: stackFile(this.#home) },
      stdio: ['ignore', this.#log, this.#log, 'ipc'],
    });
    this.#processes.add(player);
    player.once('exit', (code) => {
      this.#processes.delete(player);
      if (code !== null && code !== 0)
        this.#fail(new Error(`the player ${prefix} ended with ${code}: ${lastLines(this.#home)}`));
    });
    player.on('message', (message: FromPlayer) => {
      if (message.type !== 'started') return;
      this.starts.push(message);
      this.#onStart(message);
    });
    const ready = new Promise<void>((resolve) => {
      player.on('message', ({ type }: FromPlayer) => type === 'ready' && resolve());
    });
    await Promise.race([ready, this.failed]);
    return player;
  }

  /** The first start of a job that fits. Throws when there is none within a minute. */
  async untilStart(fits: (started: Started) => boolean): Promise<Started> {
    const late = sleep(startPatienceMs, undefined, { ref: false }).then(() => {
      throw new Error(
        `expected a worker to start a job within ${startPatienceMs / 1000} s, but the runs have none left`,
      );
    });
    const start = new Promise<Started>((resolve) => {
      this.#onStart = (started) => fits(started) && resolve(started);
    });
    return Promise.race([start, late]);
  }

  /** Messages that all workers have got so far. */
  async received(): Promise<number> {
    const counts = [...this.#processes].map(async (player) => {
      const answer = new Promise<number>((resolve) => {
        const listener = (message: FromPlayer) => {
          if (message.type !== 'received') return;
          player.off('message', listener);
          resolve(message.messages);
        };
        player.on('message', listener);
      });
      player.send({ type: 'count' } satisfies ToPlayer);
      return answer;
    });
    return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
  }

  async end(): Promise<void> {
    await Promise.all(
      [...this.#processes].map(async (player) => {
        const ended = once(player, 'exit');
        player.send({ type: 'leave' } satisfies ToPlayer);
        await ended;
      }),
    );
  }
}

const lastLines = (home: string): string => readFileSync(join(home, 'players.log'), 'utf8').slice(-2_000);
