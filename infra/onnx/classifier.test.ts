/** Graphs that transformers' classifiers were exported to, and graphs that are none. */
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { InvalidInputError } from '../../core/errors.ts';
import { packageRoot } from '../home.ts';
import { OnnxClassifier, OnnxModelError } from './classifier.ts';
import type { ClassifierOptions } from './classifier.ts';
import { writeGraph } from './graph.test-support.ts';
import type { GraphOptions } from './graph.test-support.ts';

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'petrel-onnx-'))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function using<T>(
  path: string,
  use: (classifier: OnnxClassifier) => Promise<T>,
  options: Partial<ClassifierOptions> = {},
): Promise<T> {
  const classifier = await OnnxClassifier.open(path, { threads: 1, padToken: 0, ...options });
  try {
    return await use(classifier);
  } finally {
    await classifier.close();
  }
}
const many = { tokens: 4096, sequences: 64 };

describe.each(['llama', 'qwen2'])('an exported %s', (name) => {
  const path = join(packageRoot(), `tests/onnx-classifier/${name}-onnx`);
  const stored = JSON.parse(readFileSync(join(path, 'scores.json'), 'utf8')) as {
    readonly sequences: readonly (readonly number[])[];
    readonly scores: readonly number[];
  };
  const sequences = stored.sequences.map((ids) => Int32Array.from(ids));

  it.each([
    ['one by one', { tokens: 1, sequences: 1 }],
    ['padded together', many],
    ['in batches of 16 tokens', { tokens: 16, sequences: 64 }],
  ])('has the scores of transformers, %s', async (_, limits) => {
    const scores = await using(path, (classifier) => classifier.score(sequences, limits));
    const differences = stored.scores.map((score, s) => Math.abs(score - (scores[s] as number)));
    expect(Math.max(...differences)).toBeLessThan(5e-6);
    expect(new Set(scores).size).toBeGreaterThan(sequences.length - 1);
  });

  it('gives equal bits in other threads, and beside other sequences where each is alone', async () => {
    const alone = { tokens: 1, sequences: 1 };
    const bits = await using(path, (classifier) => classifier.score(sequences, alone));
    expect(await using(path, (classifier) => classifier.score(sequences, alone))).toEqual(bits);
    const turned = await using(path, (classifier) => classifier.score(sequences.toReversed(), alone));
    expect(turned.toReversed()).toEqual(bits);
  });

  it('may be padded', () => using(path, (classifier) => classifier.tryPadding(18)));
});

describe('a classifier', () => {
  const sequences = [[3], [1, 2, 3, 4], [5, 5]].map((ids) => Int32Array.from(ids));

  it('gives the scores in the order of the sequences, and says how far it is', async () => {
    writeGraph(folder);
    const seen: number[][] = [];
    const scores = await using(folder, (classifier) =>
      classifier.score(sequences, { tokens: 4, sequences: 8 }, (...progress) => seen.push(progress)),
    );
    expect([...scores]).toEqual([3, 10, 10]);
    expect(seen).toEqual([
      [1, 2],
      [2, 2],
    ]);
  });

  it('stops between two batches when its progress throws, and goes on with the next call', async () => {
    writeGraph(folder);
    await using(folder, async (classifier) => {
      const stop = () => {
        throw new Error('cancelled');
      };
      await expect(classifier.score(sequences, { tokens: 1, sequences: 1 }, stop)).rejects.toThrow('cancelled');
      expect([...(await classifier.score(sequences, many))]).toEqual([3, 10, 10]);
    });
  });

  it('leaves the caller’s event loop free', async () => {
    writeGraph(folder);
    await using(folder, async (classifier) => {
      const long = Array.from({ length: 64 }, () => new Int32Array(1 << 14).fill(1));
      let turns = 0;
      const timer = setInterval(() => turns++, 1);
      const scores = await classifier.score(long, { tokens: 1 << 20, sequences: 64 });
      clearInterval(timer);
      expect(scores[0]).toBe(1 << 14);
      expect(turns).toBeGreaterThan(3);
    });
  });

  it('is given sequences of equal length where its config names no pad token', async () => {
    writeGraph(folder, { masked: false });
    const options = { padToken: undefined };
    expect([...(await using(folder, (one) => one.score(sequences, many), options))]).toEqual([3, 10, 10]);
    await using(folder, (one) => one.tryPadding(10), options);
  });

  it.each<readonly [string, GraphOptions, RegExp]>([
    [
      'two labels',
      { labels: 2 },
      /logits: expected one score for each sequence, float32 \[batch, 1\], found float32 \[batch, 2\]/,
    ],
    ['a score for each token', { perToken: true }, /found float32 \[batch, sequence, 1\]/],
    ['no mask', { inputs: ['input_ids'] }, /expected the inputs input_ids and attention_mask, found input_ids/],
    [
      'an input of its own',
      { inputs: ['input_ids', 'attention_mask', 'token_type_ids'] },
      /its input token_type_ids is not given/,
    ],
    [
      'a fixed length',
      { shape: ['batch', 8] },
      /expected int64 \[batch, sequence\] of any length, found int64 \[batch, 8\]/,
    ],
    ['an opset of the future', { opset: 99 }, /[Oo]pset 99/],
  ])('is refused with %s', async (_, options, message) => {
    writeGraph(folder, options);
    const error: unknown = await using(folder, async () => {}).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(OnnxModelError);
    expect((error as InvalidInputError).message).toMatch(message);
    expect((error as InvalidInputError).hint).toContain('petrel model onnx');
  });

  it('is refused when padding changes its scores', async () => {
    writeGraph(folder, { masked: false });
    await expect(using(folder, (one) => one.tryPadding(10), { padToken: 9 })).rejects.toThrow(/padding changes it/);
  });

  it('fails for a score that is not finite', async () => {
    writeGraph(folder, { brokenOver: 5 });
    await expect(using(folder, (classifier) => classifier.score(sequences, many))).rejects.toThrow(/the score NaN/);
  });

  it('is refused when the file is damaged, empty or missing', async () => {
    writeGraph(folder);
    const path = join(folder, 'model.onnx');
    truncateSync(path, 100);
    await expect(using(folder, async () => {})).rejects.toThrow(OnnxModelError);
    writeFileSync(path, '');
    await expect(using(folder, async () => {})).rejects.toThrow(OnnxModelError);
    rmSync(path);
    await expect(using(folder, async () => {})).rejects.toThrow(/model\.onnx/);
  });

  it('rejects calls once it is closed', async () => {
    writeGraph(folder);
    const classifier = await OnnxClassifier.open(folder, { threads: 1, padToken: 0 });
    await classifier.close();
    expect(classifier.isAlive).toBe(false);
    await expect(classifier.score(sequences, many)).rejects.toThrow(/is closed/);
  });
});
