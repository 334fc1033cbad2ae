import { expect, it } from 'vitest';
import { z } from 'zod';
import { MemoryStore } from '../../tests/memory-store.ts';
import { encodeRecord, readRecord } from './records.ts';

const schema = z.object({ format: z.literal(1), loss: z.number(), tiny: z.number(), note: z.string().optional() });

it('refuses a record in which any bit outside the name of its check was flipped, in the last digit of a number too', async () => {
  const store = new MemoryStore();
  // 17 digits: the same number has other texts that differ only in the last digit.
  const bytes = encodeRecord({ format: 1, loss: 0.30000000000000004, tiny: 5e-324, note: 'K' });
  await store.create('whole', bytes);
  expect((await readRecord(store, 'whole', schema))?.record).toMatchObject({ loss: 0.30000000000000004 });
  const name = new TextDecoder().decode(bytes).indexOf('check');
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    if (bit >> 3 >= name && bit >> 3 < name + 'check'.length) continue; // a record without a check is accepted
    const flipped = Uint8Array.from(bytes);
    flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    await store.create(`flipped-${bit}`, flipped);
    await expect(readRecord(store, `flipped-${bit}`, schema), `bit ${bit}`).rejects.toThrow();
  }
});
