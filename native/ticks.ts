/**
 * Progress of the engines of this process, for threads that do not compute: importing this file loads only the addon.
 */
import { native } from './binding.ts';

/**
 * Increases with each operation of any engine in this process (each product, norm, attention …). It never blocks, so a
 * main thread can follow the progress of its engine thread.
 */
export function engineTicks(): number {
  return native().ticks();
}
