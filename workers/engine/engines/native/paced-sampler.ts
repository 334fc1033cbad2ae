/**
 * A sampler of a given speed, for measurements on a machine that plays several: what one of them does not decode is not
 * given to the others (tests/spot).
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Stepped } from '../stepped-streams.ts';

/** Environment variable: tokens per second of every sampler. */
export const paceVariable = 'PETREL_PACE';

/** The sampler itself where no speed is set. Throws RangeError for a speed that is no number above 0. */
export function paced(sampler: Stepped, speed = process.env[paceVariable]): Stepped {
  if (speed === undefined) return sampler;
  const perSecond = Number(speed);
  if (!(perSecond > 0)) throw new RangeError(`${paceVariable}: expected tokens per second, got ${speed}`);
  let freeAt = performance.now();
  return {
    submit: (request) => sampler.submit(request),
    abort: (key) => sampler.abort(key),
    reset: () => sampler.reset(),
    async step() {
      const decoded = await sampler.step();
      freeAt = Math.max(freeAt, performance.now()) + (1_000 * decoded.keys.length) / perSecond;
      await delay(Math.max(0, freeAt - performance.now()));
      return decoded;
    },
  };
}
