/** Seconds of a whole update: an optimiser step and the digest of the state after it. */
import { NativePolicy } from '../../workers/engine/engines/native/policy.ts';
import { RunState } from '../../workers/engine/state/state.ts';
import { secondsOf, secondsUntil } from '../clock.ts';
import type { Measurement } from '../measurement.ts';
import { sizeOf } from '../sizes.ts';
import type { SizeName } from '../sizes.ts';
import { TrainingStep } from '../training-step.ts';

export function wholeUpdate(size: SizeName): Measurement {
  const name = `update.${size}`;
  return {
    name,
    rows: [
      { name: `${name}.total`, unit: 's' },
      { name: `${name}.digest`, unit: 's' },
    ],
    turns: 3,
    compare: { [`${name}.digest`]: `${name}.total` },
    async open(settings) {
      const step = new TrainingStep(sizeOf(size, settings.quick), settings);
      const state = new RunState({ actor: new NativePolicy(step.trainer) }, '0'.repeat(64));
      const seal = () => state.seal();
      step.take();
      await seal();
      return {
        about: `${step.tokens} tokens a step`,
        async turn() {
          state.markDirty();
          const stepped = secondsOf(() => step.take());
          const digest = await secondsUntil(seal);
          return { [`${name}.total`]: stepped + digest, [`${name}.digest`]: digest };
        },
        close: async () => step.close(),
      };
    },
  };
}
