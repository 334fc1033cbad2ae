/** Peak memory of a fresh process over two training steps. */
import type { Measurement } from '../measurement.ts';
import { peakResidentBytes } from '../peak-memory.ts';
import { sizeOf } from '../sizes.ts';
import type { SizeName } from '../sizes.ts';
import { TrainingStep } from '../training-step.ts';

export function trainMemory(size: SizeName): Measurement {
  const name = `train.${size}.memory`;
  return {
    name,
    rows: [{ name, unit: 'bytes' }],
    turns: 1,
    async open(settings) {
      const step = new TrainingStep(sizeOf(size, settings.quick), settings);
      step.take();
      return {
        about: 'peak resident memory after two steps',
        async turn() {
          step.take();
          return { [name]: peakResidentBytes() };
        },
        close: async () => step.close(),
      };
    },
    peer: (settings) => ({ work: 'memory', row: name, ...sizeOf(size, settings.quick) }),
  };
}
