/**
 * Memory of a process by what it is to hold. tests/integration/plan-memory.test.ts holds the sum against a real run.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, expect, it } from 'vitest';
import type { ProcessWanted } from '../../core/ports/engine-plans.ts';
import { nativePlans } from './plans.ts';

const folder = mkdtempSync(join(tmpdir(), 'petrel-plans-'));
afterAll(() => rmSync(folder, { recursive: true }));
const config = {
  architectures: ['LlamaForCausalLM'],
  model_type: 'llama',
  hidden_size: 8,
  intermediate_size: 24,
  num_hidden_layers: 3,
  num_attention_heads: 2,
  num_key_value_heads: 1,
  vocab_size: 50,
  max_position_embeddings: 64,
  tie_word_embeddings: false,
};
writeFileSync(join(folder, 'config.json'), JSON.stringify(config));

/** Parameters of the config above: embedding and head, and of each layer q, k, v, o, gate, up, down and two norms. */
const parameters = 2 * 50 * 8 + 3 * (64 + 32 + 32 + 64 + 3 * 24 * 8 + 2 * 8) + 8;
const wanted: ProcessWanted = {
  model: { folder, head: 'tokens' },
  compute: 'fp32',
  trained: 0,
  frozen: 0,
  ranks: 1,
  tokens: 10,
  machineBytes: 1e9,
};
const partsOf = async (more: Partial<ProcessWanted>) => {
  const [memory, ...others] = (await nativePlans.plan?.({ ...wanted, ...more })) ?? [];
  expect(others).toEqual([]);
  expect(memory?.device).toBe('memory');
  return memory?.parts ?? {};
};

it('reads what a config says', async () => {
  expect(await nativePlans.readModel(wanted.model)).toEqual({
    family: 'llama',
    layers: 3,
    parameters,
    vocab: 50,
    maxPositions: 64,
  });
});

it('a process that only samples holds weights, copies and a cache', async () => {
  const parts = await partsOf({ sampling: { maxSeqs: 4, maxModelLen: 40 } });
  // Keys and values of 4 sequences in 4 pages of 16 positions, 3 layers of 1 head of width 4.
  const kvCache = 4 * 4 * 16 * 3 * 2 * 4 * 4;
  expect(parts).toEqual({
    weights: 4 * parameters,
    copies: 4 * (parameters - 50 * 8 - 7 * 8),
    gradients: 0,
    moments: 0,
    snapshot: 0,
    critic: 0,
    reference: 0,
    activations: 0,
    kvCache,
  });
});

it('grows with everything that it is to hold', async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(3), fc.nat(3), fc.integer({ min: 1, max: 5_000 }), async (trained, frozen, tokens) => {
      const sum = async (more: Partial<ProcessWanted>) =>
        Object.values(await partsOf({ trained, frozen, tokens, ...more })).reduce((all, part) => all + part, 0);
      const least = await sum({});
      expect(await sum({ trained: trained + 1 })).toBeGreaterThan(least);
      expect(await sum({ frozen: frozen + 1 })).toBeGreaterThan(least);
      expect(await sum({ teacher: wanted.model })).toBeGreaterThan(least);
      expect(await sum({ sampling: { maxSeqs: 1, maxModelLen: 1 } })).toBeGreaterThan(least);
      expect(await sum({ compute: 'bf16' })).toBeLessThan(least);
    }),
  );
});

it('a cache takes at most a quarter of the machine, and at least one sequence', async () => {
  const sampling = { maxSeqs: 1_000, maxModelLen: 64 };
  expect((await partsOf({ sampling, machineBytes: 1e6 }))['kvCache']).toBe(250_000);
  expect((await partsOf({ sampling, machineBytes: 1 }))['kvCache']).toBe((64 / 16 + 1) * 16 * 3 * 2 * 4 * 4);
});
