import { expect, test } from 'vitest';
import { decodeLastResponses, encodeLastResponses } from './last-responses.ts';
import { encodeSafetensors } from './safetensors.ts';
import { i32 } from './trajectories.ts';

const origin = { iteration: 3, parentState: 'p' };
const all = [
  {
    row: 7,
    prompt: Int32Array.of(1, 2),
    response: Int32Array.of(3),
    mask: Uint8Array.of(1),
    logProbs: Float32Array.of(-0.5),
  },
  {
    row: 2,
    prompt: Int32Array.of(4),
    response: Int32Array.of(5, 6),
    mask: Uint8Array.of(1, 0),
    logProbs: Float32Array.of(-1, -2),
  },
];

test('last responses come back as they were stored', () => {
  expect(decodeLastResponses(encodeLastResponses(all, origin), 'here')).toEqual(all);
  expect(decodeLastResponses(encodeLastResponses([], origin), 'here')).toEqual([]);
});

test('a blob without its tensors is damage', () => {
  const bytes = encodeSafetensors({ rows: i32(Int32Array.of(1)) }, {});
  expect(() => decodeLastResponses(bytes, 'here')).toThrow(/prompt_tokens/);
});
