/** How long the event loop of this process was blocked; heartbeats and acks are delayed by that. */
import { monitorEventLoopDelay } from 'node:perf_hooks';

export interface LoopDelay {
  /** 99.9th percentile since the last `restart`, in ms, without the sampling interval. */
  p999Ms(): number;
  /** Discards the measurements; call it when start-up is over. */
  restart(): void;
}

/**
 * Time between two looks. A shorter delay is seen only by chance; heartbeats stand longer ones. A look every 10 ms took
 * half of the processor time of an idle worker.
 */
const resolutionMs = 50;

export function watchLoopDelay(): LoopDelay {
  const histogram = monitorEventLoopDelay({ resolution: resolutionMs });
  histogram.enable();
  return {
    p999Ms: () => Math.max(0, Math.round((histogram.percentile(99.9) / 1e6 - resolutionMs) * 10) / 10),
    restart: () => histogram.reset(),
  };
}
