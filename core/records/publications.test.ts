import fc from 'fast-check';
import { expect, it } from 'vitest';
import { at } from '../at.ts';
import type { EngineParameter } from '../parameters.ts';
import { publicationOf, publishedBytes, publishedFormat, publishedTensors } from './publications.ts';

const [a, b] = ['a'.repeat(64), 'b'.repeat(64)];

it('samplers load the rounded values where an update names them, else the fp32 values', () => {
  expect(publicationOf({ weightsDigest: a })).toEqual({ format: 'F32', digest: a });
  expect(publicationOf({ weightsDigest: a, publications: { F32: a } })).toEqual({ format: 'F32', digest: a });
  expect(publicationOf({ weightsDigest: a, publications: { BF16: b } })).toEqual({ format: 'BF16', digest: b });
});

it('policies that compute in bf16 are published so, but those of runs from before BLAKE3', () => {
  expect(publishedFormat({ compute: 'bf16', blockHash: 'blake3' })).toBe('BF16');
  expect(publishedFormat({ compute: 'bf16' })).toBe('F32');
  expect(publishedFormat({ compute: 'fp32', blockHash: 'blake3' })).toBe('F32');
});

it('the tensors of a publication follow each other without gaps (seed 7)', () => {
  const parameter = fc.record({ size: fc.integer({ min: 1, max: 1000 }), computed: fc.constantFrom('F32', 'BF16') });
  fc.assert(
    fc.property(fc.array(parameter, { minLength: 1 }), (sizes) => {
      let offset = 0;
      const parameters = sizes.map(({ size, computed }, i): EngineParameter => {
        offset += size;
        return { name: `p${i}`, shape: [size], offset: offset - size, size, computed };
      });
      const tensors = publishedTensors(parameters, 'BF16');
      for (const [i, { start, end, firstByte, endByte, dtype }] of tensors.entries()) {
        expect([start, firstByte]).toEqual(i === 0 ? [0, 0] : [at(tensors, i - 1).end, at(tensors, i - 1).endByte]);
        expect(endByte - firstByte).toBe((end - start) * (dtype === 'BF16' ? 2 : 4));
        expect(dtype).toBe(at(parameters, i).computed);
      }
      expect(publishedBytes(parameters, 'BF16')).toBe(at(tensors, -1).endByte);
      expect(publishedBytes(parameters, 'F32')).toBe(4 * offset);
    }),
    { seed: 7 },
  );
});
