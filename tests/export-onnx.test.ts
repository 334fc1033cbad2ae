/** `petrel model onnx`, for real where PETREL_PYTHON has the packages of models/onnx/requirements.txt. */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { exportOnnx } from '../api/models/export-onnx.ts';
import { packageRoot } from '../infra/home.ts';
import { OnnxClassifier } from '../infra/onnx/classifier.ts';
import { cliHome } from './cli.ts';
import { temporaryFolders } from './temporary-folders.ts';

const fresh = temporaryFolders('petrel-export-onnx-');
const cli = cliHome();
afterAll(() => cli.remove());
const models = join(packageRoot(), 'tests/onnx-classifier');
const python = process.env['PETREL_PYTHON'] ?? 'python3';
const isMissing = lacksPackages();
if (isMissing)
  console.log(`no classifier is exported: ${python} lacks packages of models/onnx/requirements.txt (PETREL_PYTHON)`);

describe.skipIf(isMissing)('petrel model onnx', () => {
  it.each(['llama', 'qwen2'])('writes a %s with the scores of transformers', async (name) => {
    const out = join(await fresh(), 'out');
    const { code, out: said } = await cli.petrel('model', 'onnx', join(models, name), '--out', out);
    expect(code).toBe(0);
    expect(said).toMatch(/7 scores differ from transformers by at most \d/);
    const { sequences, scores } = JSON.parse(readFileSync(join(models, `${name}-onnx/scores.json`), 'utf8')) as {
      readonly sequences: readonly (readonly number[])[];
      readonly scores: readonly number[];
    };
    const classifier = await OnnxClassifier.open(out, { threads: 1, padToken: 0 });
    const found = await classifier.score(
      sequences.map((ids) => Int32Array.from(ids)),
      { tokens: 4096, sequences: 64 },
    );
    await classifier.close();
    expect(Math.max(...scores.map((score, s) => Math.abs(score - (found[s] as number))))).toBeLessThan(5e-6);
    expect(existsSync(join(out, 'tokenizer.json'))).toBe(true);
  });

  it.each<readonly [string, (folder: string) => void, RegExp]>([
    ['two labels', (folder) => config(folder, { id2label: { 0: 'a', 1: 'b' } }), /one score, found 2 labels/],
    ['a language model', (folder) => config(folder, { architectures: ['LlamaForCausalLM'] }), /found LlamaForCausalLM/],
    ['no pad token', (folder) => config(folder, { pad_token_id: null }), /no pad_token_id/],
    [
      'fewer layers in its weights',
      (folder) => config(folder, { num_hidden_layers: 3 }),
      /the weights lack model\.layers\.2/,
    ],
  ])('refuses a model with %s, and leaves nothing', async (_, change, message) => {
    const place = await fresh();
    const [from, out] = [join(place, 'from'), join(place, 'out')];
    cpSync(join(models, 'llama'), from, { recursive: true });
    change(from);
    await expect(exportOnnx(from, out, python)).rejects.toThrow(message);
    expect(existsSync(out)).toBe(false);
  });

  it('replaces nothing', async () => {
    const out = await fresh();
    writeFileSync(join(out, 'mine'), '');
    await expect(exportOnnx(join(models, 'llama'), out, python)).rejects.toThrow(/exists and is not empty/);
  });
});

describe('petrel model onnx without its Python', () => {
  it('says what to install', async () => {
    const out = join(await fresh(), 'out');
    const bare = join(await fresh(), 'python');
    writeFileSync(bare, `#!/bin/sh\nexec python3 -I -S "$@"\n`, { mode: 0o755 }); // without any package
    await expect(exportOnnx(join(models, 'llama'), out, bare)).rejects.toMatchObject({
      message: expect.stringMatching(/has no torch/) as string,
      hint: expect.stringContaining('models/onnx/requirements.txt') as string,
    });
    await expect(exportOnnx(join(models, 'llama'), out, '/nowhere/python')).rejects.toThrow(/does not run/);
    expect(existsSync(out)).toBe(false);
    rmSync(bare);
  });
});

function config(folder: string, fields: object): void {
  const file = join(folder, 'config.json');
  writeFileSync(file, JSON.stringify({ ...(JSON.parse(readFileSync(file, 'utf8')) as object), ...fields }));
}

function lacksPackages(): boolean {
  try {
    execFileSync(python, ['-c', 'import torch, transformers, onnx, onnxscript'], { stdio: 'ignore' });
    return false;
  } catch {
    return true;
  }
}
