/** The model and the rows of the runs of these tests: sums of digits, in every form that a kind of run learns from. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { arithmeticRows } from '../api/data/arithmetic.ts';
import { runKinds } from '../core/run-kinds.ts';
import type { RunKind } from '../core/run-kinds.ts';
import { saveRandomModel } from './random-model.ts';
import type { ModelSizes } from './random-model.ts';

/** A model of two layers. */
export const tinySizes: ModelSizes = {
  hidden_size: 32,
  intermediate_size: 64,
  num_hidden_layers: 2,
  num_attention_heads: 2,
  num_key_value_heads: 2,
  vocab_size: 18,
  max_position_embeddings: 64,
};

/** A teacher of another shape than the tiny model, with the same tokenizer. */
const teacherSizes: ModelSizes = {
  hidden_size: 48,
  intermediate_size: 64,
  num_hidden_layers: 1,
  num_attention_heads: 3,
  num_key_value_heads: 1,
  vocab_size: 18,
  max_position_embeddings: 64,
};

export class LoopInputs {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
  }

  /** Writes the model and all rows. `dataSource`: of the rows with answers. */
  async write(sizes: ModelSizes, dataSource: string): Promise<void> {
    mkdirSync(this.folder, { recursive: true });
    await saveRandomModel(this.model, sizes, 0.1);
    const sums = (split: 'train' | 'validation', rows: number, sft: boolean) =>
      arithmeticRows({
        ...{ rows, seed: 3, split, preset: 'digits', digits: 1 },
        ...{ sft, careless: 0, dataSource, exclude: new Set() },
      });
    this.#write(this.rows('rl'), sums('train', 24, false));
    this.#write(this.rows('sft'), sums('train', 24, true));
    this.#write(this.rows('dpo'), pairRows(24, 3));
    this.#write(this.validation, sums('validation', 5, false));
    this.#write(this.validationPairs, pairRows(10, 4));
  }

  /** Writes a model that the policy can learn from. */
  async writeTeacher(): Promise<void> {
    await saveRandomModel(this.teacher, teacherSizes, 0.2);
  }

  /** The training rows of runs of this kind. */
  rows(kind: RunKind): string {
    return join(this.folder, { rl: 'train.jsonl', sft: 'sft.jsonl', pairs: 'pairs.jsonl' }[runKinds[kind].rows]);
  }

  get model(): string {
    return join(this.folder, 'model');
  }

  get teacher(): string {
    return join(this.folder, 'teacher');
  }

  get validation(): string {
    return join(this.folder, 'validation.jsonl');
  }

  get validationPairs(): string {
    return join(this.folder, 'validation-pairs.jsonl');
  }

  #write(file: string, rows: readonly object[]): void {
    writeFileSync(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  }
}

/** Sums of two digits; the rejected answer is one too many. */
const pairRows = (count: number, seed: number): object[] =>
  Array.from({ length: count }, (_, i) => {
    const [a, b] = [(seed + 5 * i) % 10, (seed * i + 2) % 10];
    return { data_source: 'sums', prompt: `${a}+${b}=`, chosen: `${a + b}`, rejected: `${a + b + 1}` };
  });
