/** Tokens per second of generating 64 tokens for a batch of prompts, prefill included. */
import { secondsOf } from '../clock.ts';
import { Decoding } from '../decoding.ts';
import type { Measurement } from '../measurement.ts';
import { newTokens, sizeOf } from '../sizes.ts';
import type { SizeName } from '../sizes.ts';

export const decodeBatches = [1, 16, 64, 256] as const;

export function decodeThroughput(size: SizeName, batch: number): Measurement {
  const name = `decode.${size}.b${batch}`;
  return {
    name,
    rows: [{ name, unit: 'tokens/s' }],
    turns: 3,
    async open(settings) {
      const decoding = new Decoding(sizeOf(size, settings.quick), batch, settings);
      decoding.make(2);
      return {
        about: `${batch} prompts, ${newTokens} new tokens`,
        async turn() {
          let made = 0;
          const seconds = secondsOf(() => (made = decoding.make(newTokens)));
          return { [name]: made / seconds };
        },
        close: async () => decoding.close(),
      };
    },
    peer: (settings) => ({ work: 'decode', row: name, ...sizeOf(size, settings.quick), batch, new_tokens: newTokens }),
  };
}
