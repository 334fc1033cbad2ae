/** Progress of the engines of this process, for threads that do not compute: loading this loads the addon and nothing else. */
import { native } from './binding.ts';

/**
 * Rises with every piece of work of every engine in this process (each product, norm, attention …). Never blocks, whatever other
 * threads compute: a main thread follows its engine thread's progress by it.
 */
export function engineTicks(): number {
  return native().ticks();
}
