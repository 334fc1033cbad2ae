// @module-tag engines
/** Reference models and adapters agree on torch with two ranks: also the families that the native engine lacks. */
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { loraEvaluator } from '../conformance/families/lora.ts';
import { modelsEvaluator } from '../conformance/families/models.ts';
import { loadGolden } from '../conformance/load.ts';
import { runFile } from '../conformance/run.ts';
import { hfHere, torchHere } from './engines-here.ts';

const files = await loadGolden(fileURLToPath(new URL('../golden', import.meta.url)), ['models', 'lora']);
const options = { compute: 'fp32', deterministic: true, threads: 2, ranks: 2 } as const;

describe('torch agrees with Hugging Face', () => {
  const ofModels = modelsEvaluator(torchHere(), hfHere(), options, () => true);
  const ofAdapters = loraEvaluator(torchHere(), options);
  afterAll(() => Promise.all([ofModels.close(), ofAdapters.close()]));

  it.each(files.map((file) => [file.label, file] as const))('%s', async (_, file) => {
    const { cases } = await runFile(file, [ofModels, ofAdapters]);
    expect(cases.length).toBeGreaterThan(3);
    const failed = cases.filter(({ status }) => status === 'failed');
    expect(failed.map(({ name, reason }) => `${name}: ${reason}`)).toEqual([]);
  });
});
