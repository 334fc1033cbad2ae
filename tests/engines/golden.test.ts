// @module-tag engines
/** The reference models agree on torch with two ranks: also the families that the native engine lacks. */
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { modelsEvaluator } from '../conformance/families/models.ts';
import { loadGolden } from '../conformance/load.ts';
import { runFile } from '../conformance/run.ts';
import { hfHere, torchHere } from './torch-here.ts';

const files = await loadGolden(fileURLToPath(new URL('../golden', import.meta.url)), ['models']);
const options = { compute: 'fp32', deterministic: true, threads: 2, ranks: 2 } as const;

describe('torch agrees with Hugging Face', () => {
  const evaluator = modelsEvaluator(torchHere(), hfHere(), options, () => true);
  afterAll(() => evaluator.close());

  it.each(files.map((file) => [file.label, file] as const))('%s', async (_, file) => {
    const { cases } = await runFile(file, [evaluator]);
    expect(cases.length).toBeGreaterThan(3);
    const failed = cases.filter(({ status }) => status === 'failed');
    expect(failed.map(({ name, reason }) => `${name}: ${reason}`)).toEqual([]);
  });
});
