import { describe, expect, it } from 'vitest';
import type { TensorFacts } from './protocol.ts';
import { scoresOutput, wrongScores } from './shapes.ts';

const input = (name: string): TensorFacts => ({ name, type: 'int64', shape: ['batch', 'sequence'] });
const inputs = [input('input_ids'), input('attention_mask')];
const output = (shape: TensorFacts['shape'], name = 'logits', type = 'float32'): TensorFacts => ({ name, type, shape });

describe('the output with the scores', () => {
  it.each([
    ['is named logits, or the only one', [output(['b', 1], 'other'), output(['b', 1])], 'logits'],
    ['may have any name where it is alone', [output(['b', 1], 'score')], 'score'],
    ['may have a shape that the file does not tell', [output([])], 'logits'],
    ['may have columns whose number the file does not tell', [output(['b', 'labels'])], 'logits'],
  ])('%s', (_, outputs, name) => {
    expect(scoresOutput({ inputs, outputs })).toEqual({ name });
  });

  it.each([
    ['of two', [output(['b', 1], 'a'), output(['b', 1], 'b')], /expected an output logits, found a, b/],
    ['of one batch only', [output([1, 1])], /found float32 \[1, 1\]/],
    ['of another type', [output(['b', 1], 'logits', 'float16')], /found float16/],
    ['of a single number for each', [output(['b'])], /found float32 \[b\]/],
    ['that is missing', [], /found none/],
  ])('is not chosen %s', (_, outputs, wrong) => {
    expect(scoresOutput({ inputs, outputs })).toEqual({ wrong: expect.stringMatching(wrong) as string });
  });
});

it('a batch must come back as one score each', () => {
  expect(wrongScores(3, [3, 1])).toBeUndefined();
  expect(wrongScores(3, [3, 2])).toMatch(/found \[3, 2\]/);
  expect(wrongScores(3, [1, 1])).toMatch(/each of 3 sequences/);
  expect(wrongScores(3, [3])).toMatch(/found \[3\]/);
});
