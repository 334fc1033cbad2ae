/**
 * Reads a run's objects: their bytes as stored, checked by digest. An object that cannot be read is a fault, never an
 * exception.
 */
import { createHash } from 'node:crypto';
import type { Store } from '../../core/ports/store.ts';
import { canonicalText } from './canonical.ts';
import { ledgerKeys } from './keys.ts';
import type { LedgerKeys } from './keys.ts';
import { NotOfShape } from './shape.ts';
import type { Shape } from './shape.ts';
import { DamagedTensors, headerOf, readTensors } from './tensors.ts';
import type { Tensors } from './tensors.ts';
import { Faults, show } from './verdict.ts';

/** A record with the digest of its bytes. `damaged`: it exists but cannot be read. */
export type Found<T> =
  | { readonly type: 'absent'; readonly key: string }
  | { readonly type: 'damaged'; readonly key: string; readonly digest: string }
  | { readonly type: 'read'; readonly key: string; readonly digest: string; readonly record: T };

export const digestOfBytes = (bytes: Uint8Array | string): string => createHash('sha256').update(bytes).digest('hex');

/** Large objects are read in pieces of this size. */
export const pieceBytes = 8 * 1024 * 1024;

export class Objects {
  readonly store: Store;
  readonly keys: LedgerKeys;
  readonly faults = new Faults();
  objects = 0;
  bytes = 0;
  /** Each record contains a checksum of its own content, because no other record names the last record of a log. */
  #checked = 0;
  readonly #unchecked: string[] = [];

  constructor(store: Store, runId: string) {
    this.store = store;
    this.keys = ledgerKeys(runId);
  }

  /** A record that may be missing. */
  async find<T>(key: string, shape: Shape<T>): Promise<Found<T>> {
    const bytes = await this.get(key);
    if (bytes === undefined) return { type: 'absent', key };
    const digest = digestOfBytes(bytes);
    try {
      return { type: 'read', key, digest, record: shape(this.#parse(key, bytes), 'record') };
    } catch (error) {
      this.faults.add(key, 'a record in canonical form', reasonOf(error));
      return { type: 'damaged', key, digest };
    }
  }

  /** Does what `find` does, but a missing record is a fault. */
  async need<T>(key: string, shape: Shape<T>, why: string): Promise<T | undefined> {
    const found = await this.find(key, shape);
    if (found.type === 'absent') this.faults.add(key, `an object: ${why}`, 'nothing');
    return found.type === 'read' ? found.record : undefined;
  }

  /** Bytes whose digest is known. Undefined when they are missing or damaged; damage is a fault. */
  async fact(key: string, digest: string): Promise<Uint8Array | undefined> {
    const bytes = await this.get(key);
    if (bytes === undefined) return undefined;
    const found = digestOfBytes(bytes);
    if (found === digest) return bytes;
    this.faults.add(key, `bytes of digest ${digest}`, `${bytes.byteLength} bytes of digest ${found}`);
    return undefined;
  }

  /** A JSON blob. */
  async json<T>(digest: string, shape: Shape<T>): Promise<T | undefined> {
    const key = this.keys.blob(digest);
    const bytes = await this.fact(key, digest);
    if (bytes === undefined) return undefined;
    return this.tried(key, 'a JSON object', () => shape(JSON.parse(utf8(bytes)), 'value'));
  }

  /**
   * Tensors with their data, checked by digest; without data when not `deep`. Undefined when they are missing or
   * damaged.
   */
  async tensors(key: string, digest: string | undefined, deep: boolean): Promise<Tensors | undefined> {
    if (!deep) return this.#header(key);
    const bytes = digest === undefined ? await this.get(key) : await this.fact(key, digest);
    if (bytes === undefined) return undefined;
    return this.tried(key, 'safetensors', () => readTensors(bytes));
  }

  async size(key: string): Promise<number | undefined> {
    return this.store.head(key);
  }

  async get(key: string, range?: readonly [number, number]): Promise<Uint8Array | undefined> {
    const bytes = await this.store.get(key, range);
    if (bytes !== undefined) {
      this.objects++;
      this.bytes += bytes.byteLength;
    }
    return bytes;
  }

  /** The value of `answer`. When it throws, a fault is added and the result is undefined. */
  tried<T>(key: string, expected: string, answer: () => T): T | undefined {
    try {
      return answer();
    } catch (error) {
      this.faults.add(key, expected, reasonOf(error));
      return undefined;
    }
  }

  /**
   * Notes that records have no checksums. Either every record of a run has one or none has: runs of older petrel
   * versions have none.
   */
  tellUnchecked(): void {
    if (this.#checked === 0) return;
    for (const key of this.#unchecked) this.faults.add(key, 'a record with a checksum', 'a record without a checksum');
  }

  async #header(key: string): Promise<Tensors | undefined> {
    const size = await this.size(key);
    if (size === undefined) return undefined;
    const first = size < 8 ? new Uint8Array() : await this.get(key, [0, 8]); // some stores refuse an empty range
    const length = this.tried(key, 'safetensors', () => headerOf(first ?? new Uint8Array(), size));
    if (length === undefined) return undefined;
    const json = await this.get(key, [8, 8 + length]);
    return this.tried(key, 'safetensors', () => readTensors(json ?? new Uint8Array(), { length, size }));
  }

  #parse(key: string, bytes: Uint8Array): unknown {
    const text = utf8(bytes);
    const value: unknown = JSON.parse(text);
    if (`${canonicalText(value)}\n` !== text) throw new NotOfShape('not in canonical form');
    if (typeof value !== 'object' || value === null) throw new NotOfShape('not an object');
    if (!Object.hasOwn(value, 'check')) this.#unchecked.push(key);
    else {
      this.#checked++;
      const { check, ...rest } = value as { readonly check: unknown };
      if (check !== digestOfBytes(canonicalText(rest))) throw new NotOfShape('its content does not match its checksum');
    }
    return value;
  }
}

const utf8 = (bytes: Uint8Array): string => new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);

function reasonOf(error: unknown): string {
  if (error instanceof NotOfShape || error instanceof DamagedTensors) return error.message;
  if (error instanceof SyntaxError || error instanceof TypeError) return 'not JSON';
  if (error instanceof RangeError) return `not readable: ${show(error.message)}`;
  throw error;
}
