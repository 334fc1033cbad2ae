/** How soon the control process notices that a worker's process was killed, and when its jobs are offered to others. */
import { once } from 'node:events';
import { median } from '../clock.ts';
import type { Players } from './players.ts';
import type { Traffic } from './traffic.ts';

export interface Losses {
  readonly noticedSeconds: number;
  /** Seconds until the lost worker's job was offered to others. */
  readonly offeredSeconds: number;
}

const losses = 3;

/** Medians. */
export async function measureLosses(players: Players, traffic: Traffic): Promise<Losses> {
  const noticed: number[] = [];
  const offered: number[] = [];
  for (let i = 0; i < losses; i++) {
    const name = `lost${i}`;
    const first = players.untilStart(({ worker }) => worker.startsWith(name));
    const victim = await players.addProcess(name, 1, ['rollout']);
    const { job, worker } = await first;
    const again = players.untilStart((start) => start.job === job);
    const ended = once(victim, 'exit');
    victim.kill('SIGKILL');
    await ended;
    const at = performance.timeOrigin + performance.now();
    await again;
    offered.push(((traffic.publishedLast.get(job) ?? Number.NaN) - at) / 1000);
    noticed.push(((traffic.goneAt.get(worker) ?? Number.NaN) - at) / 1000);
  }
  return { noticedSeconds: median(noticed), offeredSeconds: median(offered) };
}
