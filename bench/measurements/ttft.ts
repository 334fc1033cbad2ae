/** Time to the first token of one prompt. */
import { secondsOf } from '../clock.ts';
import { Decoding } from '../decoding.ts';
import type { Measurement } from '../measurement.ts';
import { sizeOf } from '../sizes.ts';
import type { SizeName } from '../sizes.ts';

export function timeToFirstToken(size: SizeName): Measurement {
  const name = `decode.${size}.ttft`;
  return {
    name,
    rows: [{ name, unit: 'ms' }],
    turns: 9,
    async open(settings) {
      const decoding = new Decoding(sizeOf(size, settings.quick), 1, settings);
      decoding.make(1);
      return {
        about: 'one prompt',
        turn: async () => ({ [name]: 1000 * secondsOf(() => decoding.make(1)) }),
        close: async () => decoding.close(),
      };
    },
    peer: (settings) => ({ work: 'ttft', row: name, ...sizeOf(size, settings.quick), batch: 1 }),
  };
}
