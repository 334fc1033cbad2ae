/** What a run reads besides its records: model, rows and scorer, all by digest. */
import { createHash } from 'node:crypto';
import { canonicalText } from './canonical.ts';
import { digestOfBytes, pieceBytes } from './objects.ts';
import type { Objects } from './objects.ts';
import { modelShape } from './records.ts';
import type { Inputs } from './records.ts';
import { integers, offsets } from './tensors.ts';

/** Tokens of each row. */
export interface Rows {
  readonly count: number;
  prompt(row: number): Int32Array;
  /** Of rows to learn. */
  response(row: number): Int32Array;
}

export class InputFacts {
  readonly #objects: Objects;
  readonly #rows = new Map<string, Promise<Rows | undefined>>();

  constructor(objects: Objects) {
    this.#objects = objects;
  }

  async check(inputs: Inputs, revisionKey: string, deep: boolean): Promise<void> {
    const { faults, keys } = this.#objects;
    for (const model of new Set([inputs.model, inputs.reference ?? inputs.model]))
      await this.#model(model, revisionKey, deep);
    for (const dataset of new Set([inputs.train, inputs.validation ?? inputs.train])) {
      const rows = deep ? await this.rows(dataset) : undefined;
      for (const name of ['tokens.safetensors', 'rows.jsonl']) {
        if ((await this.#objects.size(`datasets/${dataset}/${name}`)) === undefined)
          faults.add(`datasets/${dataset}/${name}`, `rows: ${revisionKey} names them`, 'nothing');
      }
      if (rows !== undefined && dataset === inputs.train && rows.count < inputs.trainRows)
        faults.add(`datasets/${dataset}`, `${inputs.trainRows} rows`, String(rows.count));
    }
    const module = inputs.scorer?.module;
    if (module === undefined) return;
    const bytes = await this.#objects.get(keys.blob(module));
    if (bytes === undefined) faults.add(keys.blob(module), `the scorer: ${revisionKey} names it`, 'nothing');
    else faults.equal(keys.blob(module), 'digest', module, digestOfBytes(bytes));
  }

  /** Rows by dataset digest, checked. undefined when damaged or absent. */
  rows(dataset: string): Promise<Rows | undefined> {
    const known = this.#rows.get(dataset) ?? this.#readRows(dataset);
    this.#rows.set(dataset, known);
    return known;
  }

  async #readRows(dataset: string): Promise<Rows | undefined> {
    const names = ['tokens.safetensors', 'rows.jsonl'] as const;
    const files: Record<string, string> = {};
    for (const name of names) {
      const bytes = await this.#objects.get(`datasets/${dataset}/${name}`);
      if (bytes === undefined) return undefined;
      files[name] = digestOfBytes(bytes);
    }
    const found = digestOfBytes(canonicalText({ format: 1, files }));
    if (found !== dataset) {
      this.#objects.faults.add(`datasets/${dataset}`, 'files that its name is the digest of', `files of ${found}`);
      return undefined;
    }
    const key = `datasets/${dataset}/${names[0]}`;
    const tensors = await this.#objects.tensors(key, undefined, true);
    return (
      tensors &&
      this.#objects.tried(key, 'tokens of rows', () => {
        const prompts = integers(tensors, 'prompt_tokens');
        const promptEnds = offsets(tensors, 'prompt_offsets', prompts.length);
        const responses = tensors.entries.has('response_tokens')
          ? integers(tensors, 'response_tokens')
          : new Int32Array();
        const responseEnds = tensors.entries.has('response_offsets')
          ? offsets(tensors, 'response_offsets', responses.length)
          : new Int32Array(1);
        return {
          count: promptEnds.length - 1,
          prompt: (row) => prompts.subarray(promptEnds[row], promptEnds[row + 1]),
          response: (row) => responses.subarray(responseEnds[row], responseEnds[row + 1]),
        };
      })
    );
  }

  async #model(model: string, revisionKey: string, deep: boolean): Promise<void> {
    const { faults } = this.#objects;
    const key = `models/${model}/manifest.json`;
    const bytes = await this.#objects.get(key);
    if (bytes === undefined) return faults.add(key, `a model: ${revisionKey} names it`, 'nothing');
    const manifest = this.#objects.tried(key, 'a list of files', () =>
      modelShape(JSON.parse(new TextDecoder().decode(bytes)), 'manifest'),
    );
    if (manifest === undefined) return;
    faults.equal(key, 'digest of its files', model, digestOfBytes(canonicalText({ format: 1, files: manifest.files })));
    for (const { name, bytes: size, sha256 } of manifest.files) {
      const file = `models/${model}/${name}`;
      faults.equal(file, 'size', size, (await this.#objects.size(file)) ?? 'nothing');
      if (deep) faults.equal(file, 'digest', sha256, await digestInPieces(this.#objects, file, size));
    }
  }
}

/** Never a whole model in memory. */
export async function digestInPieces(objects: Objects, key: string, size: number): Promise<string> {
  const hash = createHash('sha256');
  for (let at = 0; at < size; at += pieceBytes) {
    const piece = await objects.get(key, [at, Math.min(at + pieceBytes, size)]);
    if (piece === undefined) return 'nothing';
    hash.update(piece);
  }
  return hash.digest('hex');
}
