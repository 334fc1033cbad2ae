/** What a run reads besides its records: model, rows and scorer, each identified by its digest. */
import { createHash } from 'node:crypto';
import { canonicalText } from './canonical.ts';
import { digestOfBytes, pieceBytes } from './objects.ts';
import type { Objects } from './objects.ts';
import { datasetIndexShape, modelShape } from './records.ts';
import type { DatasetIndex, Inputs } from './records.ts';
import { integers, offsets } from './tensors.ts';

/** Tokens of a row. */
export interface RowTokens {
  readonly prompt: Int32Array;
  /** Tokens of a row in supervised training, or of the chosen response of a pair. */
  readonly response?: Int32Array;
  /** The other response of a pair. */
  readonly rejected?: { readonly prompt: Int32Array; readonly response: Int32Array };
}

export interface Rows {
  readonly count: number;
  /**
   * Tokens of the rows, in the order of `rows`. Undefined when they could not be made. A row that cannot be read is a
   * fault.
   */
  tokens(rows: readonly number[], model: string): Promise<readonly RowTokens[] | undefined>;
}

/** Renders and tokenises rows of a dataset of format 2 with the tokenizer of a model. */
export type Tokenise = (dataset: string, model: string, rows: readonly number[]) => Promise<readonly RowTokens[]>;

export class InputFacts {
  readonly #objects: Objects;
  readonly #tokenise: Tokenise | undefined;
  readonly #rows = new Map<string, Promise<Rows | undefined>>();
  readonly #indices = new Map<string, Promise<DatasetIndex | 'damaged' | undefined>>();

  constructor(objects: Objects, tokenise?: Tokenise) {
    this.#objects = objects;
    this.#tokenise = tokenise;
  }

  async check(inputs: Inputs, revisionKey: string, deep: boolean): Promise<void> {
    const { faults, keys } = this.#objects;
    const { model: base, reference = base, teacher = base, rewardModel = base } = inputs;
    for (const model of new Set([base, reference, teacher, rewardModel])) await this.#model(model, revisionKey, deep);
    for (const dataset of new Set([inputs.train, inputs.validation ?? inputs.train])) {
      const rows = deep ? await this.rows(dataset) : undefined;
      await this.#sizes(dataset, revisionKey, !deep);
      if (rows !== undefined && dataset === inputs.train && rows.count < inputs.trainRows)
        faults.add(`datasets/${dataset}`, `${inputs.trainRows} rows`, String(rows.count));
    }
    const { scorer } = inputs;
    const modules = {
      scorer: scorer?.module,
      'files of the scorer': scorer?.files,
      loss: inputs.loss?.module,
      estimator: inputs.estimator?.module,
      sampler: inputs.sampler?.module,
      'start of the sampler': inputs.sampler?.start,
    };
    for (const [what, module] of Object.entries(modules)) {
      if (module === undefined) continue;
      const bytes = await this.#objects.get(keys.blob(module));
      if (bytes === undefined) faults.add(keys.blob(module), `the ${what}: ${revisionKey} names it`, 'nothing');
      else faults.equal(keys.blob(module), 'digest', module, digestOfBytes(bytes));
    }
  }

  /** Rows by dataset digest, checked. Undefined when they are damaged or missing. */
  rows(dataset: string): Promise<Rows | undefined> {
    const known = this.#rows.get(dataset) ?? this.#readRows(dataset);
    this.#rows.set(dataset, known);
    return known;
  }

  /**
   * Checks that the files of a dataset exist. For format 2, blocks that are read anyway are checked when they are read.
   */
  async #sizes(dataset: string, revisionKey: string, withBlocks: boolean): Promise<void> {
    const { faults } = this.#objects;
    const why = `rows: ${revisionKey} names them`;
    const index = await this.#index(dataset);
    if (index === 'damaged') return;
    if (index === undefined) {
      for (const name of await this.#wholeNames(dataset))
        if ((await this.#objects.size(`datasets/${dataset}/${name}`)) === undefined)
          faults.add(`datasets/${dataset}/${name}`, why, 'nothing');
      return;
    }
    for (const { sha256, bytes } of withBlocks ? index.blocks : []) {
      const key = `datasets/${dataset}/${sha256}.jsonl`;
      const size = await this.#objects.size(key);
      if (size === undefined) faults.add(key, why, 'nothing');
      else faults.equal(key, 'size', bytes, size);
    }
  }

  /** The files that a dataset without an index must have. A dataset in blocks must have an index. */
  async #wholeNames(dataset: string): Promise<readonly string[]> {
    const names = await this.#objects.store.children(`datasets/${dataset}/`);
    return names.some((name) => /^[0-9a-f]{64}\.jsonl$/.test(name))
      ? ['index.json']
      : ['tokens.safetensors', 'rows.jsonl'];
  }

  /** The index of format 2; undefined when the dataset has none. */
  #index(dataset: string): Promise<DatasetIndex | 'damaged' | undefined> {
    const known = this.#indices.get(dataset) ?? this.#readIndex(dataset);
    this.#indices.set(dataset, known);
    return known;
  }

  async #readIndex(dataset: string): Promise<DatasetIndex | 'damaged' | undefined> {
    const key = `datasets/${dataset}/index.json`;
    const bytes = await this.#objects.get(key);
    if (bytes === undefined) return undefined;
    const files = { 'index.json': digestOfBytes(bytes) };
    const found = digestOfBytes(canonicalText({ format: 2, files }));
    if (found !== dataset) {
      this.#objects.faults.add(`datasets/${dataset}`, 'an index whose digest names the dataset', `one of ${found}`);
      return 'damaged';
    }
    const index = this.#objects.tried(key, 'an index of blocks', () =>
      datasetIndexShape(JSON.parse(new TextDecoder().decode(bytes)), 'index'),
    );
    return index ?? 'damaged';
  }

  async #readRows(dataset: string): Promise<Rows | undefined> {
    const index = await this.#index(dataset);
    if (index === 'damaged') return undefined;
    return index === undefined ? this.#readWhole(dataset) : this.#readBlocks(dataset, index);
  }

  /** Checks every block against its digest. Only one block is in memory at a time. */
  async #readBlocks(dataset: string, index: DatasetIndex): Promise<Rows | undefined> {
    const { faults } = this.#objects;
    let next = 0;
    let isWhole = true;
    for (const { firstRow, rows, sha256 } of index.blocks) {
      const key = `datasets/${dataset}/${sha256}.jsonl`;
      const bytes = await this.#objects.get(key);
      const lines = bytes === undefined ? 'nothing' : linesOf(bytes);
      if (bytes === undefined || digestOfBytes(bytes) !== sha256) {
        isWhole = false;
        faults.add(key, `rows ${firstRow} to ${firstRow + rows - 1}`, bytes === undefined ? 'nothing' : 'other bytes');
      } else faults.equal(key, 'rows', rows, lines);
      faults.equal(key, 'first row', next, firstRow);
      next += rows;
    }
    faults.equal(`datasets/${dataset}/index.json`, 'rows', next, index.rows);
    if (!isWhole) return undefined;
    return {
      count: next,
      tokens: async (rows, model) => {
        try {
          return await this.#tokenise?.(dataset, model, rows);
        } catch (error) {
          const reason = error instanceof Error ? error.message : String(error);
          faults.add(`datasets/${dataset}`, 'rows that can be tokenised', reason);
          return undefined;
        }
      },
    };
  }

  async #readWhole(dataset: string): Promise<Rows | undefined> {
    const names = ['tokens.safetensors', 'rows.jsonl'] as const;
    const files: Record<string, string> = {};
    for (const name of names) {
      const bytes = await this.#objects.get(`datasets/${dataset}/${name}`);
      if (bytes === undefined) return undefined;
      files[name] = digestOfBytes(bytes);
    }
    const found = digestOfBytes(canonicalText({ format: 1, files }));
    if (found !== dataset) {
      this.#objects.faults.add(`datasets/${dataset}`, 'files whose digest names the dataset', `files of ${found}`);
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
          tokens: async (rows) =>
            rows.map((row) => ({
              prompt: prompts.subarray(promptEnds[row], promptEnds[row + 1]),
              response: responses.subarray(responseEnds[row], responseEnds[row + 1]),
            })),
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
    const { files, base } = manifest;
    const named = { format: 1, files, ...(base !== undefined && { base }) };
    faults.equal(key, 'digest of its files', model, digestOfBytes(canonicalText(named)));
    for (const { name, bytes: size, sha256 } of manifest.files) {
      const file = `models/${model}/${name}`;
      faults.equal(file, 'size', size, (await this.#objects.size(file)) ?? 'nothing');
      if (deep) faults.equal(file, 'digest', sha256, await digestInPieces(this.#objects, file, size));
    }
  }
}

function linesOf(bytes: Uint8Array): number {
  let lines = 0;
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1)) lines++;
  return lines;
}

/** Hashes a model in pieces: a whole model may not fit in memory. */
async function digestInPieces(objects: Objects, key: string, size: number): Promise<string> {
  const hash = createHash('sha256');
  for (let at = 0; at < size; at += pieceBytes) {
    const piece = await objects.get(key, [at, Math.min(at + pieceBytes, size)]);
    if (piece === undefined) return 'nothing';
    hash.update(piece);
  }
  return hash.digest('hex');
}
