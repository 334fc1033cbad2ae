/**
 * What a run under losses cost in time: `effectiveTime` as docs/look-up/spot.md defines it, and tokens that were
 * decoded for nothing.
 */
import type { NatsConnection } from '@nats-io/nats-core';
import { cpus } from 'node:os';
import { billOfFleet } from '../../core/fleet/bill.ts';
import { jobEvent, timings } from '../../core/wire/messages.ts';
import { historiesOf } from '../../log/fleet/fleet-histories.ts';
import type { FleetLog } from '../../log/fleet/fleet-log.ts';

/** Seconds since the epoch. */
export interface Interval {
  readonly from: number;
  readonly to: number;
}

/** Machine-seconds of an interval, by what they were spent on. */
export interface MachineSeconds {
  readonly bought: number;
  readonly booting: number;
  readonly lost: number;
  /** Seconds in which machines waited: for jobs, between them, and for nobody. */
  readonly waiting: number;
}

/** What the machines of a run did: as a whole, and in each of its iterations. */
export interface MachineTime extends MachineSeconds {
  readonly iterations: readonly MachineSeconds[];
  /** Numbers of the iterations, from 0, in which a machine or the trainer was missing, and of the ones after these. */
  readonly disturbed: readonly number[];
}

/**
 * `whole`: from the start of the run to its end; `ends`: of its iterations, ascending; `losses`: when machines were
 * told to leave or were lost, and when the trainer was.
 */
export async function machineTime(
  log: FleetLog,
  whole: Interval,
  ends: readonly number[],
  losses: readonly number[],
): Promise<MachineTime> {
  const { instances, spans } = billOfFleet(historiesOf(await log.instances()), await log.usage(), whole.to);
  const secondsIn = ({ from, to }: Interval): MachineSeconds => {
    const inside = (a: number, b: number) => Math.max(0, Math.min(b, to) - Math.max(a, from));
    const sum = (use: string) =>
      spans.filter((span) => span.use === use).reduce((all, span) => all + inside(span.from, span.to), 0);
    const bought = instances.reduce((all, one) => all + inside(one.launchedAt, one.endedAt), 0);
    const [booting, lost, useful] = [sum('booting'), sum('lost'), sum('useful')];
    return { bought, booting, lost, waiting: bought - booting - lost - useful };
  };
  const missing = [
    ...losses.map((at) => ({ from: at, to: at })),
    ...spans.filter(({ use, from }) => use === 'booting' && from > whole.from),
  ];
  const intervals = ends.map((to, i) => ({ from: ends[i - 1] ?? whole.from, to }));
  const hit = intervals.flatMap(({ from, to }, i) =>
    missing.some((one) => one.from < to && one.to >= from) ? [i] : [],
  );
  const disturbed = [...new Set(hit.flatMap((i) => [i, i + 1]))].filter((i) => i < intervals.length);
  return { ...secondsIn(whole), iterations: intervals.map(secondsIn), disturbed };
}

/**
 * What machines waited in the disturbed iterations more than in the same ones of the undisturbed run, which do the same
 * work. In the others nothing is missing, so what they wait more is chance.
 */
export function waitingCaused({ iterations, disturbed }: MachineTime, undisturbed: MachineTime): number {
  const more = disturbed.map((i) => (iterations[i]?.waiting ?? 0) - (undisturbed.iterations[i]?.waiting ?? 0));
  return Math.max(
    0,
    more.reduce((sum, one) => sum + one, 0),
  );
}

/** Part of the bought time that was not lost because of losses. */
export const effectiveTime = ({ booting, lost, bought }: MachineSeconds, caused: number): number =>
  1 - (booting + lost + caused) / bought;

/**
 * Tokens that workers had decoded of rollout jobs which other workers ended. Workers tell twice a second how far they
 * are (`timings.loopback`); what a lost one decoded after that is estimated from its speed. Of a job that changes hands
 * twice some tokens count twice.
 */
export class DecodedTokens {
  readonly #perSecond: number;
  /** Maps a job to its last worker and the number of tokens that were decoded by then. */
  readonly #jobs = new Map<string, { readonly worker: string; readonly done: number }>();
  /** Maps a worker to the time of its last word, in ms. */
  readonly #heardAt = new Map<string, number>();
  /** Maps a lost worker to its tokens since its last word. */
  readonly #untold = new Map<string, number>();
  readonly #handedOver = new Map<string, number>();

  /** `tokensPerSecond`: of every worker. */
  constructor(tokensPerSecond: number) {
    this.#perSecond = tokensPerSecond;
  }

  heard(job: string, worker: string, done: number, nowMs: number): void {
    const before = this.#jobs.get(job);
    if (before !== undefined && before.worker !== worker) this.#handOver(job, before);
    this.#jobs.set(job, { worker, done });
    this.#heardAt.set(worker, nowMs);
  }

  /** The machine of this worker has vanished. */
  lost(instance: string, nowMs: number): void {
    // A longer silence: it had no job.
    for (const [worker, at] of this.#heardAt)
      if (worker.startsWith(`${instance}.`) && nowMs - at < 2 * timings.loopback.progressMs)
        this.#untold.set(worker, ((nowMs - at) / 1_000) * this.#perSecond);
  }

  /** `resumed`: by job, the tokens that its last worker had from the journal. */
  thrownAway(resumed: ReadonlyMap<string, number>): number {
    const all = [...this.#handedOver].map(([job, tokens]) => Math.max(0, tokens - (resumed.get(job) ?? 0)));
    return Math.round(all.reduce((sum, one) => sum + one, 0));
  }

  #handOver(job: string, { worker, done }: { readonly worker: string; readonly done: number }): void {
    const untold = this.#untold.get(worker) ?? 0;
    this.#untold.delete(worker); // it decoded for one of its jobs
    this.#handedOver.set(job, (this.#handedOver.get(job) ?? 0) + done + untold);
  }
}

/** Passes on what the run's workers say of their rollout jobs. */
export function listen(nc: NatsConnection, runId: string, tokens: DecodedTokens): void {
  nc.subscribe(`ev.${runId}.>`, {
    callback: (error, message) => {
      const event = error === null ? jobEvent.safeParse(message.json()).data : undefined;
      const [, , job = '', ...worker] = message.subject.split('.');
      if (event?.type === 'progress' && job.startsWith('rollout-'))
        tokens.heard(job, worker.join('.'), event.done, performance.now());
    },
  });
}

/** Busy part of the machine's processors since the call, 0 to 1. */
export function watchLoad(): () => number {
  const before = processorTimes();
  return () => {
    const after = processorTimes();
    return (after.busy - before.busy) / Math.max(1, after.all - before.all);
  };
}

function processorTimes(): { readonly busy: number; readonly all: number } {
  const times = cpus().map(({ times }) => times);
  const idle = times.reduce((sum, one) => sum + one.idle, 0);
  const all = times.reduce((sum, { user, nice, sys, idle, irq }) => sum + user + nice + sys + idle + irq, 0);
  return { busy: all - idle, all };
}
