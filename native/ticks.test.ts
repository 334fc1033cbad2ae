import { Worker } from 'node:worker_threads';
import { join } from 'node:path';
import { expect, test } from 'vitest';

import { engineInfo, engineTicks } from './index.ts';
import { batchOf, decoder, trainerOf } from './testing/decoders.ts';

test('ticks rise with a forward pass', () => {
  const shape = decoder({});
  const trainer = trainerOf(shape, 1, {});
  const before = engineTicks();
  trainer.forward(batchOf(shape, [3, 5], 1), { temperature: 1, wants: ['logProbs'], keep: false });
  expect(engineTicks()).toBeGreaterThan(before);
  trainer.close();
});

test('ticks are seen to rise while another thread is inside one call after another', async () => {
  engineInfo(); // the addon is loaded here too, as on a main thread
  const addon = process.env['PETREL_NATIVE'] ?? join(import.meta.dirname, '..', 'build', 'native', 'petrel.node');
  // Computes without returning to its event loop until the flag is set.
  const flag = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(
    `const { workerData: { addon, flag } } = require('node:worker_threads');
     const [p, g, m, v] = [0, 1, 2, 3].map(() => new Float32Array(1 << 20));
     for (let t = 1; Atomics.load(flag, 0) === 0; t++) require(addon).adamw(p, g, m, v, 1e-3, 0.9, 0.99, 1e-8, 0, 1, t, undefined);`,
    { eval: true, workerData: { addon, flag } },
  );
  const ended = new Promise((resolve) => worker.once('exit', resolve));
  try {
    for (let seen = engineTicks(), rises = 0; rises < 3; ) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      const now = engineTicks();
      if (now > seen) rises += 1;
      seen = now;
    }
  } finally {
    Atomics.store(flag, 0, 1);
    await ended;
  }
});
