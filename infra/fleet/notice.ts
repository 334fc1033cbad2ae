/** Notices that this machine or process will be preempted: the port, and the two sources. */

/** Sources that a pool may name. Signals are always a source. */
export const noticeSources = ['ec2'] as const;
export type NoticeSource = (typeof noticeSources)[number];

/** Durations instead of times, because clocks differ. */
export interface Notice {
  readonly reason: string;
  /** Time from now until the preemption. */
  readonly graceMs: number;
}

/** Calls back at most once. Returns a function that ends the watch. */
export type NoticeWatch = (onNotice: (notice: Notice) => void) => () => void;

/** SIGTERM, or Ctrl-C in a terminal. The sender waits this long before it kills. */
export function signalNotice(graceMs: number, signals: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT']): NoticeWatch {
  return (onNotice) => {
    const listeners = signals.map((signal) => [signal, () => onNotice({ reason: signal, graceMs })] as const);
    for (const [signal, listener] of listeners) process.once(signal, listener);
    return () => listeners.forEach(([signal, listener]) => process.off(signal, listener));
  };
}

/** The first notice of several sources. */
export function firstNotice(watches: readonly NoticeWatch[]): NoticeWatch {
  return (onNotice) => {
    let noticed = false;
    const ends = watches.map((watch) =>
      watch((notice) => {
        if (noticed) return;
        noticed = true;
        onNotice(notice);
      }),
    );
    return () => ends.forEach((end) => end());
  };
}
