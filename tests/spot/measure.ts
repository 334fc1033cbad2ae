/** What a run under losses cost in time: `effectiveTime` as docs/spot.md defines it, and tokens that were decoded for nothing. */
import type { NatsConnection } from '@nats-io/nats-core';
import { cpus } from 'node:os';
import { billOfFleet } from '../../core/fleet/bill.ts';
import { jobEvent } from '../../core/wire/messages.ts';
import { historiesOf } from '../../infra/store/fleet-histories.ts';
import type { FleetLog } from '../../infra/store/fleet-log.ts';

/** Machine-seconds from `from` to `to`, by what they were spent on. */
export interface MachineSeconds {
  readonly bought: number;
  readonly booting: number;
  readonly lost: number;
  /** For jobs, between them, and for nobody. */
  readonly waiting: number;
}

/** `from`, `to`: seconds since the epoch; instances are counted between them only. */
export async function machineSeconds(log: FleetLog, from: number, to: number): Promise<MachineSeconds> {
  const { instances, spans } = billOfFleet(historiesOf(await log.instances()), await log.usage(), to);
  const inside = (a: number, b: number) => Math.max(0, Math.min(b, to) - Math.max(a, from));
  const sum = (use: string) =>
    spans.filter((span) => span.use === use).reduce((all, span) => all + inside(span.from, span.to), 0);
  const bought = instances.reduce((all, one) => all + inside(one.launchedAt, one.endedAt), 0);
  const [booting, lost, useful] = [sum('booting'), sum('lost'), sum('useful')];
  return { bought, booting, lost, waiting: bought - booting - lost - useful };
}

/** Part of the bought time that was not lost because of losses. Waiting counts as far as the undisturbed run had less of it. */
export function effectiveTime(disturbed: MachineSeconds, undisturbed: MachineSeconds): number {
  const caused = Math.max(0, disturbed.waiting - undisturbed.waiting);
  return 1 - (disturbed.booting + disturbed.lost + caused) / disturbed.bought;
}

/** Tokens that workers had decoded of a rollout job when another worker took it. */
export class DecodedTokens {
  readonly #jobs = new Map<string, { worker: string; done: number }>();
  /** Of all workers that did not end their job. */
  handedOver = 0;

  constructor(nc: NatsConnection, runId: string) {
    nc.subscribe(`ev.${runId}.>`, {
      callback: (error, message) => {
        const event = error === null ? jobEvent.safeParse(message.json()).data : undefined;
        const [, , job = '', ...worker] = message.subject.split('.');
        if (event?.type === 'progress' && job.startsWith('rollout-')) this.#note(job, worker.join('.'), event.done);
      },
    });
  }

  #note(job: string, worker: string, done: number): void {
    const known = this.#jobs.get(job);
    if (known !== undefined && known.worker !== worker) this.handedOver += known.done;
    this.#jobs.set(job, { worker, done });
  }
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
