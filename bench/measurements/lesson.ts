/**
 * The lesson of examples/02, SmolLM2-135M on additions, on a private stack: seconds of a whole iteration, and the peak
 * memory of all processes. The peer is TRL's GRPOTrainer.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { InvalidInputError } from '../../core/errors.ts';
import { packageRoot } from '../../infra/home.ts';
import { ensureStack, stopStack } from '../../infra/stack/index.ts';
import { median } from '../clock.ts';
import type { BenchSettings, Measurement, Session, Values } from '../measurement.ts';
import { iterationTimes } from '../run/iterations.ts';
import { largestPass } from '../run/largest-pass.ts';
import { PeakPss } from '../run/peak-pss.ts';
import { privateHome } from '../run/private-home.ts';
import { runExample } from '../run/start.ts';

const example = join(packageRoot(), 'examples/02-smollm2-addition');
/** Created by the example's make-model.py. */
const model = join(example, 'model');

/** What recipe.yaml says. */
const [prompts, samples, newTokens, lr] = [16, 8, 12, 1e-5];
/** Sequences in the peer's micro-batch when its memory is measured: as many as petrel's, rounded down to a divisor. */
const microBatch = 64;

/** Engines are created in the first one. */
const warmUp = 1;
const iterations = (quick: boolean) => warmUp + (quick ? 1 : 5);

export const lesson: Measurement = {
  name: 'lesson',
  rows: [
    { name: 'lesson.iteration', unit: 's' },
    { name: 'lesson.memory', unit: 'bytes' },
  ],
  turns: 1,
  open,
  peerName: 'trl',
  peer: ({ quick }) => ({
    ...{ model, rows: join(example, 'train.jsonl'), prompts, samples, new_tokens: newTokens, lr },
    ...{ tried_micro_batches: [prompts * samples, 64, 32], equal_micro_batch: microBatch },
    ...{ tried: 2, iterations: iterations(quick) },
    values: { 'lesson.iteration': 'seconds', 'lesson.memory': 'bytes' },
  }),
};

async function open({ quick, threads }: BenchSettings): Promise<Session> {
  if (!existsSync(model)) {
    const hint = `python3 ${join(example, 'make-model.py')}`;
    throw new InvalidInputError(`lesson: ${model} is missing`, { where: model, hint });
  }
  const { home, remove } = privateHome();
  return {
    about: `${iterations(quick)} iterations of examples/02-smollm2-addition`,
    async turn(): Promise<Values> {
      await ensureStack({
        home,
        workers: [{ name: 'local', count: 1, roles: ['trainer', 'rollout', 'reward'], threads }],
      });
      const peak = new PeakPss(home);
      try {
        const log = await runExample(home, '02-smollm2-addition', iterations(quick));
        const times = await iterationTimes(log, warmUp);
        checkEqual(await largestPass(log));
        return { 'lesson.iteration': median(times.map(({ wallMs }) => wallMs)) / 1000, 'lesson.memory': peak.end() };
      } finally {
        peak.end();
        await stopStack(home); // the peer gets the whole machine
      }
    },
    close: remove,
  };
}

function checkEqual(responses: number): void {
  if (responses < microBatch || responses >= 2 * microBatch)
    throw new Error(
      `a pass of petrel had ${responses} responses, so the peer's micro-batch is not to be ${microBatch}`,
    );
}
