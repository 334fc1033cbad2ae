// @module-tag engines
/** The torch engine passes the contract of engines, with one rank and with two, and `hf` that of samplers. */
import { describe, expect, it } from 'vitest';
import { engineFacts } from '../../core/wire/engine-facts.ts';
import { forwardOne } from '../../core/ports/one-lane.ts';
import { batchOf } from '../../native/testing/decoders.ts';
import { engineContract, randomState } from '../contracts/engine.ts';
import { savedModel } from '../contracts/model.ts';
import { hfHere, torchHere } from './engines-here.ts';

it('says what it is in the words of the wire', () => {
  expect(engineFacts.parse(torchHere().facts())).toEqual(torchHere().facts());
  expect(engineFacts.parse(hfHere().facts())).toEqual(hfHere().facts());
});

it('gives one score where a language model becomes a reward model, and the value of each token', async () => {
  const { folder } = savedModel();
  const batch = batchOf({ vocab: 41 }, [7, 3], 11);
  for (const [head, output] of [
    ['scores', 'scores'],
    ['values', 'values'],
  ] as const) {
    const options = { compute: 'fp32', deterministic: true, threads: 1, trainable: true } as const;
    const engine = await torchHere().open({ folder, head }, options);
    try {
      await engine.load(randomState(engine, 1));
      const { outputs } = await forwardOne(engine, batch, { temperature: 1, wants: [output], keep: false });
      expect(outputs[output]).toHaveLength(batch.positions_P.length);
    } finally {
      await engine.close();
    }
  }
});

describe.each([1, 2])('%i ranks', (ranks) => engineContract('torch', torchHere(), hfHere(), { ranks }));
