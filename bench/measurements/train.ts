/** Tokens per second of a whole training step. */
import type { Measurement } from '../measurement.ts';
import { secondsOf } from '../clock.ts';
import { sizeOf } from '../sizes.ts';
import type { SizeName } from '../sizes.ts';
import { TrainingStep } from '../training-step.ts';

export function trainThroughput(size: SizeName): Measurement {
  const name = `train.${size}.throughput`;
  return {
    name,
    rows: [{ name, unit: 'tokens/s' }],
    turns: 3,
    async open(settings) {
      const step = new TrainingStep(sizeOf(size, settings.quick), settings);
      step.take();
      return {
        about: `${step.tokens} tokens a step`,
        turn: async () => ({ [name]: step.tokens / secondsOf(() => step.take()) }),
        close: async () => step.close(),
      };
    },
    peer: (settings) => ({ work: 'train', row: name, ...sizeOf(size, settings.quick) }),
  };
}
