import { describe, expect, test } from 'vitest';
import { stateParts } from '../core/records/state-parts.ts';

import { batchOf, decoder, trainerOf } from './testing/decoders.ts';

const adam = { lr: 0.01, beta1: 0.9, beta2: 0.95, eps: 1e-8, weightDecay: 0.1, maxGradNorm: 1 };

test('parameters are in canonical order and fill the buffers without gaps', () => {
  const trainer = trainerOf(decoder({ layers: 11, qkvBias: true }), 1);
  const names = trainer.parameters.map(({ name }) => name);
  expect(names).toEqual([...names].sort());
  let end = 0;
  for (const { offset, size, shape } of trainer.parameters) {
    expect(offset).toBe(end);
    expect(size).toBe(shape.reduce((a, b) => a * b));
    end += size;
  }
  expect(trainer.elements).toBe(end);
  trainer.close();
});

describe('step', () => {
  test.each([NaN, Infinity])('with a gradient of %s changes nothing but the gradients', (bad) => {
    const trainer = trainerOf(decoder(), 2);
    const gradients = new Float32Array(trainer.elements).fill(0.5);
    gradients[17] = bad;
    trainer.write('grads', gradients);
    const before = stateParts.map((part) => trainer.read(part));
    const { taken, gradNorm } = trainer.step(adam);
    expect([taken, Number.isFinite(gradNorm), trainer.steps]).toEqual([false, false, 0]);
    expect(stateParts.map((part) => trainer.read(part))).toEqual(before);
    expect(trainer.read('grads').every((g) => g === 0)).toBe(true);
    trainer.close();
  });

  test('is followed by log-probs of the new weights', () => {
    const config = decoder();
    const trainer = trainerOf(config, 3);
    const batch = batchOf(config, [12, 9], 3);
    const once = (keep: boolean) => trainer.forward(batch, { temperature: 1, wants: ['logProbs'], keep });
    const first = once(true);
    trainer.backward(first.handle, { logProbs: new Float32Array(21).fill(-1 / 21) });
    expect(trainer.step(adam).taken).toBe(true);
    expect(trainer.steps).toBe(1);
    const mean = (x: Float32Array): number => x.reduce((a, b) => a + b, 0) / x.length;
    expect(mean(once(false).outputs.logProbs)).toBeGreaterThan(mean(first.outputs.logProbs));
    trainer.close();
  });
});

test('parts are copied in and out, also at places in them', () => {
  const trainer = trainerOf(decoder(), 5);
  const all = trainer.read('weights');
  expect(trainer.read('weights', 7, new Float32Array(3))).toEqual(all.slice(7, 10));
  trainer.write('weights', Float32Array.of(1, 2), 8);
  const cut = trainer.writer('weights', 1, 3);
  const bytes = new Uint8Array(Float32Array.of(8, 9).buffer);
  cut(bytes.subarray(0, 3));
  cut(bytes.subarray(3));
  expect(() => cut(bytes.subarray(0, 1))).toThrow(RangeError);
  expect([...trainer.read('weights', 0, new Float32Array(11))]).toEqual([
    ...[all[0], 8, 9],
    ...all.slice(3, 8),
    ...[1, 2, all[10]],
  ]);
  trainer.zero('weights');
  expect(trainer.read('weights').every((x) => x === 0)).toBe(true);
  trainer.close();
});

test('the most likely tokens are those of the whole rows of logits, with their log-probs', () => {
  const config = decoder({ vocab: 131 });
  const trainer = trainerOf(config, 6);
  const batch = batchOf(config, [5, 9], 6);
  const wants = ['logProbs', 'logits', 'topTokens', 'topLogProbs'] as const;
  for (const topK of [1, 4, 64, 65, config.vocab]) {
    const { outputs } = trainer.forward(batch, { temperature: 0.7, wants, topK, keep: false });
    batch.targets_P.forEach((target, p) => {
      const logits = outputs.logits.subarray(p * config.vocab, (p + 1) * config.vocab);
      const sorted = Array.from(logits, (_, token) => token).sort((a, b) => logits[b]! - logits[a]! || a - b);
      const tokens = outputs.topTokens.subarray(p * topK, (p + 1) * topK);
      expect([...tokens]).toEqual(sorted.slice(0, topK));
      const place = tokens.indexOf(target);
      if (place >= 0) expect(outputs.topLogProbs[p * topK + place]).toBe(outputs.logProbs[p]);
    });
  }
  const refused = { temperature: 1, wants: ['topTokens'], keep: false } as const;
  expect(() => trainer.forward(batch, refused)).toThrow('topTokens and topLogProbs need topK');
  expect(() => trainer.forward(batch, { ...refused, topK: config.vocab + 1 })).toThrow('need topK');
  trainer.close();
});

test('equally likely tokens come in order of their ids', () => {
  const config = decoder();
  const trainer = trainerOf(config, 7);
  trainer.zero('weights');
  trainer.weightsChanged();
  const wants = ['topTokens'] as const;
  const { outputs } = trainer.forward(batchOf(config, [3], 7), { temperature: 1, wants, topK: 5, keep: false });
  expect([...outputs.topTokens]).toEqual([0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4]);
  trainer.close();
});

test('a closed trainer refuses work', () => {
  const config = decoder();
  const trainer = trainerOf(config, 4);
  trainer.close();
  trainer.close();
  expect(() => trainer.read('weights')).toThrow('closed');
  expect(() => trainer.forward(batchOf(config, [3], 1), { temperature: 1, wants: ['logProbs'], keep: false })).toThrow(
    'closed',
  );
});

test('a discarded handle is gone and its memory is used again', () => {
  const config = decoder();
  const trainer = trainerOf(config, 5);
  const batch = batchOf(config, [30], 5);
  const { handle } = trainer.forward(batch, { temperature: 1, wants: ['logProbs'], keep: true });
  trainer.discard(handle);
  expect(() => trainer.backward(handle, { logProbs: new Float32Array(30) })).toThrow(`handle ${handle}`);
  const bytes = trainer.activationBytes;
  for (let i = 0; i < 3; i++)
    trainer.discard(trainer.forward(batch, { temperature: 1, wants: ['logProbs'], keep: true }).handle);
  expect(trainer.activationBytes).toBe(bytes);
  trainer.close();
});

describe('refusals', () => {
  const config = decoder();
  const good = batchOf(config, [4, 3], 1);
  const options = { temperature: 1, wants: ['logProbs'], keep: false } as const;
  test.each([
    ['a token beyond the vocabulary', { tokens_N: good.tokens_N.map(() => 37) }, 'token ids'],
    ['a negative target', { targets_P: good.targets_P.map(() => -1) }, 'target ids'],
    ['an empty sequence', { cuSeqlens: Int32Array.of(0, 4, 4, 7) }, 'at least one token'],
    ['lengths that do not end at N', { cuSeqlens: Int32Array.of(0, 4) }, 'cuSeqlens must run'],
    ['more targets than positions', { positions_P: Int32Array.of(1) }, 'targets'],
  ])('%s', (_name, change, message) => {
    const trainer = trainerOf(config, 6);
    expect(() => trainer.forward({ ...good, ...change }, options)).toThrow(message);
    trainer.close();
  });

  test('temperature 0', () => {
    const trainer = trainerOf(config, 6);
    expect(() => trainer.forward(good, { ...options, temperature: 0 })).toThrow('temperature');
    trainer.close();
  });

  test('a config whose heads do not divide', () => {
    expect(() => trainerOf(decoder({ kvHeads: 3 }), 1)).toThrow('4 heads');
  });
});
