/** Tokens per second of a whole training step, on all threads and on one. */
import type { BenchSettings, Measurement, RowInfo } from '../measurement.ts';
import { secondsOf } from '../clock.ts';
import { sizeOf } from '../sizes.ts';
import type { SizeName } from '../sizes.ts';
import { TrainingStep } from '../training-step.ts';

export function trainThroughput(size: SizeName): Measurement {
  const row: RowInfo = {
    name: `train.${size}.throughput`,
    unit: 'tokens/s',
    limits: () => [{ peak: `peak.gemm.${size}.train`, need: 1 }],
  };
  return trainingSteps(size, row, (settings) => settings);
}

export function trainOnOneThread(size: SizeName): Measurement {
  const row: RowInfo = { name: `train.${size}.oneThread`, unit: 'tokens/s' };
  return trainingSteps(size, row, (settings) => ({ ...settings, threads: 1 }));
}

function trainingSteps(size: SizeName, row: RowInfo, change: (settings: BenchSettings) => BenchSettings): Measurement {
  return {
    name: row.name,
    rows: [row],
    turns: 3,
    async open(settings) {
      const step = new TrainingStep(sizeOf(size, settings.quick), change(settings));
      step.take();
      return {
        about: `${step.tokens} tokens a step`,
        turn: async () => ({ [row.name]: step.tokens / secondsOf(() => step.take()) }),
        close: async () => step.close(),
      };
    },
    peer: (settings) => ({ work: 'train', row: row.name, ...change(settings), ...sizeOf(size, settings.quick) }),
  };
}
