/**
 * Text to token ids and back, by the Rust tokenizers library from a folder's `tokenizer.json`; special tokens and the
 * stop set from the files beside it.
 */
import { readFile, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { type Decoder, Tokenizer as Library } from 'tokenizers';
import { InvalidInputError } from '../core/errors.ts';
import { type JsonObject, isObject } from './fields.ts';
import { foreignFile } from './foreign-file.ts';
import { assertModelFiles } from './model-files.ts';

export interface EncodeOptions {
  /** Adds the tokenizer's own begin and end tokens. Chat templates write theirs, so leave this off for them. */
  readonly addSpecial?: boolean;
}

export interface DecodeOptions {
  /** Drop special tokens. Added tokens that are not special stay. */
  readonly skipSpecial?: boolean;
}

/** Special tokens by their names in Hugging Face files: `bos_token`, `eos_token`, `pad_token`, … */
export type SpecialTokens = Readonly<Record<string, string>>;

/** What can be asked of a tokenizer on another thread too. */
export interface BatchTokenizer {
  readonly specialTokens: SpecialTokens;
  /** The chat template of the folder, if it has one. */
  readonly chatTemplate: string | undefined;
  /** Ids go from 0 to vocabSize − 1, added tokens included. */
  readonly vocabSize: number;
  /**
   * Generation ends after any of these: the eos ids of config.json and generation_config.json, and the tokenizer's own.
   * Ascending.
   */
  readonly stopTokens: readonly number[];
  encodeBatch(texts: readonly string[], options?: EncodeOptions): Promise<Int32Array[]>;
  /** Tokens of each text, counted on other threads. */
  lengths(texts: readonly string[], options?: EncodeOptions): Promise<number[]>;
  /** Unknown ids are ignored. */
  decodeBatch(sequences: readonly Int32Array[], options?: DecodeOptions): Promise<string[]>;
}

export interface Tokenizer extends BatchTokenizer {
  readonly bosId: number | undefined;
  readonly eosId: number | undefined;
  /** Id of the pad token; without one that of the end token, else undefined. */
  readonly padId: number | undefined;
  encode(text: string, options?: EncodeOptions): Promise<Int32Array>;
  encodePair(text: string, pair: string, options?: EncodeOptions): Promise<Int32Array>;
  /** Unknown ids are ignored. */
  decode(ids: ArrayLike<number>, options?: DecodeOptions): string;
  /** Text of a growing sequence. */
  stream(options?: DecodeOptions): TextStream;
  idOf(token: string): number | undefined;
  tokenOf(id: number): string | undefined;
}

const opened = new Map<string, Promise<Tokenizer>>();

/** Opening takes half a second, so the last few are cached while their files do not change. */
const keptOpen = 4;

/** Throws InvalidInputError when a file is missing or damaged. */
export async function openTokenizer(folder: string): Promise<Tokenizer> {
  await assertModelFiles(folder);
  const key = await fingerprint(folder);
  const known = opened.get(key);
  if (known !== undefined) return known;
  const opening = readTokenizer(folder);
  opened.set(key, opening);
  opening.catch(() => opened.delete(key));
  if (opened.size > keptOpen) opened.delete(opened.keys().next().value ?? '');
  return opening;
}

const files = [
  'tokenizer.json',
  'tokenizer_config.json',
  'special_tokens_map.json',
  'config.json',
  'generation_config.json',
  'chat_template.jinja',
  'chat_template.json',
];

async function fingerprint(folder: string): Promise<string> {
  const marks = await Promise.all(
    files.map((name) =>
      stat(join(folder, name)).then(
        ({ size, mtimeMs }) => `${size}@${mtimeMs}`,
        () => '-',
      ),
    ),
  );
  return [resolve(folder), ...marks].join(' ');
}

async function readTokenizer(folder: string): Promise<Tokenizer> {
  const path = join(folder, 'tokenizer.json');
  const json = await readText(path);
  if (json === undefined) {
    throw new InvalidInputError(`${path}: there is no tokenizer.json`, {
      where: path,
      hint: 'Save the tokenizer with transformers (use_fast=True).',
    });
  }
  let library: Library;
  try {
    library = Library.fromString(json);
  } catch (cause) {
    const foreign = await foreignFile(path, "a tokenizer's JSON");
    if (foreign !== undefined) throw foreign;
    throw new InvalidInputError(
      `${path}: not a valid tokenizer: ${cause instanceof Error ? cause.message : String(cause)}`,
      { where: path, cause },
    );
  }
  // Padding or truncation settings in the file would change every result.
  library.disablePadding();
  library.disableTruncation();
  return new FolderTokenizer(library, specialAddedTokens(json), await readCompanions(folder));
}

interface Companions {
  readonly specialTokens: SpecialTokens;
  readonly eosIds: readonly number[];
  readonly chatTemplate: string | undefined;
}

class FolderTokenizer implements Tokenizer {
  readonly vocabSize: number;
  readonly specialTokens: SpecialTokens;
  readonly bosId: number | undefined;
  readonly eosId: number | undefined;
  readonly padId: number | undefined;
  readonly stopTokens: readonly number[];
  readonly chatTemplate: string | undefined;
  readonly #library: Library;
  readonly #decoder: Decoder | null;
  readonly #special: ReadonlySet<string>;
  /** Tokens by id, filled on demand. */
  readonly #tokens: (string | undefined)[] = [];

  constructor(library: Library, special: ReadonlySet<string>, { specialTokens, eosIds, chatTemplate }: Companions) {
    this.#library = library;
    this.#decoder = library.getDecoder();
    this.#special = special;
    const ids = Object.values(library.getVocab(true));
    this.vocabSize = ids.reduce((largest, id) => Math.max(largest, id), -1) + 1;
    this.specialTokens = specialTokens;
    this.chatTemplate = chatTemplate;
    this.bosId = this.#idOfSpecial('bos_token');
    this.eosId = this.#idOfSpecial('eos_token');
    this.padId = this.#idOfSpecial('pad_token') ?? this.eosId;
    this.stopTokens = [...new Set([...eosIds, ...(this.eosId === undefined ? [] : [this.eosId])])].sort(
      (a, b) => a - b,
    );
  }

  async encode(text: string, { addSpecial = false }: EncodeOptions = {}): Promise<Int32Array> {
    return Int32Array.from((await this.#library.encode(text, null, { addSpecialTokens: addSpecial })).getIds());
  }

  async encodeBatch(texts: readonly string[], { addSpecial = false }: EncodeOptions = {}): Promise<Int32Array[]> {
    const encodings = await this.#library.encodeBatch([...texts], { addSpecialTokens: addSpecial });
    return encodings.map((encoding) => Int32Array.from(encoding.getIds()));
  }

  async lengths(texts: readonly string[], { addSpecial = false }: EncodeOptions = {}): Promise<number[]> {
    const encodings = await this.#library.encodeBatch([...texts], { addSpecialTokens: addSpecial });
    return encodings.map((encoding) => encoding.getLength());
  }

  async encodePair(text: string, pair: string, { addSpecial = false }: EncodeOptions = {}): Promise<Int32Array> {
    return Int32Array.from((await this.#library.encode(text, pair, { addSpecialTokens: addSpecial })).getIds());
  }

  /** The same as the library's own decode, without its thread pool: looks the tokens up, then runs the decoder. */
  decode(ids: ArrayLike<number>, { skipSpecial = false }: DecodeOptions = {}): string {
    const tokens: string[] = [];
    for (let i = 0; i < ids.length; i++) {
      const token = this.tokenOf(ids[i] as number);
      if (token !== undefined && !(skipSpecial && this.#special.has(token))) tokens.push(token);
    }
    return this.#decoder === null ? tokens.join(' ') : this.#decoder.decode(tokens);
  }

  async decodeBatch(sequences: readonly Int32Array[], options: DecodeOptions = {}): Promise<string[]> {
    return sequences.map((ids) => this.decode(ids, options));
  }

  stream(options: DecodeOptions = {}): TextStream {
    return new TextStream((ids) => this.decode(ids, options));
  }

  idOf(token: string): number | undefined {
    return this.#library.tokenToId(token) ?? undefined;
  }

  tokenOf(id: number): string | undefined {
    if (!Number.isInteger(id) || id < 0 || id >= this.vocabSize) return undefined;
    this.#tokens[id] ??= this.#library.idToToken(id) ?? undefined;
    return this.#tokens[id];
  }

  #idOfSpecial(name: string): number | undefined {
    const token = this.specialTokens[name];
    return token === undefined ? undefined : this.idOf(token);
  }
}

/**
 * Decodes a growing sequence. `push` returns the whole text so far, exactly as decoding all ids at once would, and
 * `stable`: how many UTF-16 units of it can no longer change. Text that ends in U+FFFD may be an incomplete character,
 * and byte tokens can turn earlier characters back into U+FFFD. So only text that was the same before and after a
 * cleanly ended token is stable.
 */
class TextStream {
  readonly #decode: (ids: readonly number[]) => string;
  readonly #ids: number[] = [];
  #text = '';
  #clean = '';
  #stable = 0;

  constructor(decode: (ids: readonly number[]) => string) {
    this.#decode = decode;
  }

  get text(): string {
    return this.#text;
  }

  get stable(): number {
    return this.#stable;
  }

  push(...ids: readonly number[]): string {
    this.#ids.push(...ids);
    this.#text = this.#decode(this.#ids);
    if (!this.#text.endsWith('\ufffd')) {
      this.#stable = Math.max(this.#stable, commonPrefix(this.#clean, this.#text));
      this.#clean = this.#text;
    }
    return this.#text;
  }
}

function commonPrefix(a: string, b: string): number {
  let length = 0;
  while (length < Math.min(a.length, b.length) && a[length] === b[length]) length++;
  return length;
}

/** Added tokens marked as special, which `skipSpecial` drops. */
function specialAddedTokens(tokenizerJson: string): ReadonlySet<string> {
  const added = (JSON.parse(tokenizerJson) as JsonObject)['added_tokens'];
  const tokens = Array.isArray(added) ? (added as unknown[]).filter(isObject) : [];
  return new Set(tokens.filter((token) => token['special'] === true).map((token) => String(token['content'])));
}

async function readCompanions(folder: string): Promise<Companions> {
  const [settings, map, config, generation] = await Promise.all(
    ['tokenizer_config.json', 'special_tokens_map.json', 'config.json', 'generation_config.json'].map((name) =>
      readJsonObject(join(folder, name)),
    ),
  );
  const template =
    (await readText(join(folder, 'chat_template.jinja'))) ??
    templateOf(settings) ??
    templateOf(await readJsonObject(join(folder, 'chat_template.json')));
  return {
    specialTokens: { ...specialTokens(map), ...specialTokens(settings) },
    eosIds: [...eosIds(config), ...eosIds(generation)],
    chatTemplate: template,
  };
}

/** A name ends in `_token`; its value is the text, or an object with the text as `content`. */
function specialTokens(file: JsonObject | undefined): Record<string, string> {
  const tokens: Record<string, string> = {};
  for (const [name, value] of Object.entries(file ?? {})) {
    const content = isObject(value) ? value['content'] : value;
    if (name.endsWith('_token') && typeof content === 'string') tokens[name] = content;
  }
  return tokens;
}

function eosIds(file: JsonObject | undefined): number[] {
  const value = file?.['eos_token_id'];
  const ids: unknown[] = Array.isArray(value) ? value : [value];
  return ids.filter((id): id is number => Number.isSafeInteger(id) && (id as number) >= 0);
}

/** A text, or a list of named templates, of which `default` is used. */
function templateOf(file: JsonObject | undefined): string | undefined {
  const value = file?.['chat_template'];
  if (typeof value === 'string') return value;
  const named: unknown[] = Array.isArray(value) ? value : [];
  const template = named.filter(isObject).find((entry) => entry['name'] === 'default')?.['template'];
  return typeof template === 'string' ? template : undefined;
}

async function readJsonObject(path: string): Promise<JsonObject | undefined> {
  const text = await readText(path);
  if (text === undefined) return undefined;
  try {
    const parsed: unknown = JSON.parse(text);
    if (isObject(parsed)) return parsed;
  } catch (cause) {
    throw (await foreignFile(path, 'JSON')) ?? new InvalidInputError(`${path}: not valid JSON`, { where: path, cause });
  }
  throw new InvalidInputError(`${path}: expected a JSON object`, { where: path });
}

/** The largest known tokenizer.json has 35 MB. */
const maxFileBytes = 256 * 1024 * 1024;

/** undefined when the file does not exist. */
async function readText(path: string): Promise<string | undefined> {
  try {
    const { size } = await stat(path);
    if (size > maxFileBytes)
      throw new InvalidInputError(`${path}: the file has ${size} bytes, the most is ${maxFileBytes}`, { where: path });
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
