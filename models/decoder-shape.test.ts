import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { headOfConfig } from './config.ts';
import { activeParametersOf, linearLayersOf, parametersOf, readDecoderShape } from './decoder-shape.ts';
import { readConfigJson } from './folder.ts';
import { publishedModels } from './published-configs.test-support.ts';
import { openSafetensors } from './safetensors.ts';

const folders = join(import.meta.dirname, '../tests/golden/models');

describe('the shapes of a decoder, from its config alone', () => {
  it.each(readdirSync(folders))('are those of the tensors in the files of %s', async (name) => {
    const folder = join(folders, name);
    const config = await readConfigJson(folder);
    const shape = readDecoderShape(config, headOfConfig(config));
    const files = await openSafetensors(folder);
    try {
      const stored = [...files.tensors.values()].map(({ shape: sizes }) => sizes.reduce((all, size) => all * size, 1));
      expect(parametersOf(shape)).toBe(stored.reduce((sum, size) => sum + size, 0));
      const linear = linearLayersOf(shape);
      for (const { path, out, in: width } of linear)
        expect(files.tensors.get(`${path}.weight`)?.shape).toEqual([out, width]);
      expect(linear.length).toBeGreaterThan(0);
    } finally {
      await files.close();
    }
  });

  it.each(Object.entries(publishedModels))(
    'have the published size of %s',
    (_, { config, billions, activeBillions }) => {
      const shape = readDecoderShape(config);
      expect(parametersOf(shape) / 1e9 / billions).toBeCloseTo(1, 2);
      if (activeBillions === undefined) return;
      // Authors count the embedding, too, of which a token reads one row.
      const active = activeParametersOf(shape) + shape.vocab * shape.hidden;
      expect(Math.abs(active / 1e9 / activeBillions - 1)).toBeLessThan(0.02);
    },
  );

  it('are refused where a key of transformers’ decoders is missing', () => {
    expect(() => readDecoderShape({ model_type: 'gpt2', n_embd: 8, vocab_size: 9 })).toThrow(/hidden_size must be/);
  });
});
