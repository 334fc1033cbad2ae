/** Prompt tokens per second until each of 16 prompts has its first token. */
import { secondsOf } from '../clock.ts';
import { Decoding } from '../decoding.ts';
import type { Measurement } from '../measurement.ts';
import { prefillPrompts, sizeOf } from '../sizes.ts';
import type { SizeName } from '../sizes.ts';

export function prefillThroughput(size: SizeName): Measurement {
  const name = `prefill.${size}`;
  return {
    name,
    rows: [{ name, unit: 'tokens/s', limits: () => [{ peak: `peak.gemm.${size}.prefill`, need: 1 }] }],
    turns: 5,
    async open(settings) {
      const { prompt } = sizeOf(size, settings.quick);
      const decoding = new Decoding(sizeOf(size, settings.quick), prefillPrompts, settings);
      decoding.make(1);
      return {
        about: `${prefillPrompts} prompts of ${prompt} tokens`,
        turn: async () => ({ [name]: (prefillPrompts * prompt) / secondsOf(() => decoding.make(1)) }),
        close: async () => decoding.close(),
      };
    },
    peer: (settings) => ({ work: 'prefill', row: name, ...sizeOf(size, settings.quick), batch: prefillPrompts }),
  };
}
