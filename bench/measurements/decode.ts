/** Tokens per second of decoding a batch whose prompts are in the cache. */
import { Decoding } from '../decoding.ts';
import { weightBytes } from '../matrix-products.ts';
import type { Measurement } from '../measurement.ts';
import { newTokens, sizeOf } from '../sizes.ts';
import type { SizeName } from '../sizes.ts';

/** The first token of a sample belongs to its prefill. */
const steps = newTokens - 1;

export function decodeThroughput(size: SizeName, batch: number): Measurement {
  const name = `decode.${size}.b${batch}`;
  return {
    name,
    rows: [
      {
        name,
        unit: 'tokens/s',
        limits: ({ precision, quick }) => [
          { peak: `peak.gemm.${size}.b${batch}`, need: 1 },
          { peak: 'peak.read', need: weightBytes(sizeOf(size, quick), precision) / batch },
        ],
      },
    ],
    turns: 3,
    async open(settings) {
      const decoding = new Decoding(sizeOf(size, settings.quick), batch, settings);
      decoding.decodeSeconds(2);
      return {
        about: `${batch} prompts, ${newTokens} new tokens`,
        turn: async () => ({ [name]: (batch * steps) / decoding.decodeSeconds(steps) }),
        close: async () => decoding.close(),
      };
    },
    peer: (settings) => ({ work: 'decode', row: name, ...sizeOf(size, settings.quick), batch, new_tokens: newTokens }),
  };
}
