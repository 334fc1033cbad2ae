/**
 * Reads and decides records: parses at the edge, takes the digest of the stored bytes, and adopts an equal decision or
 * throws FencedError.
 */
import { z } from 'zod';
import { canonicalJson } from '../../core/canonical.ts';
import { damage } from '../../core/records/damage.ts';
import { FencedError, TerminalError } from '../../core/errors.ts';
import type { Digest } from '../../core/ids.ts';
import type { Store } from '../../core/ports/store.ts';
import { batchSeal, shardedFormat, updateSeal } from '../../core/records/schema.ts';
import { faultPoint } from '../faults/index.ts';
import { digestOf, sha256 } from './digest.ts';

/** A record with the digest of its bytes as stored. */
export interface Stored<T> {
  readonly key: string;
  readonly digest: Digest;
  readonly record: T;
}

/** undefined when absent. Throws TerminalError `NewerFormat`, PauseError `DamagedRecord`. */
export async function readRecord<S extends z.ZodType>(
  store: Store,
  key: string,
  schema: S,
): Promise<Stored<z.infer<S>> | undefined> {
  const bytes = await store.get(key);
  return bytes && storedRecord(key, bytes, schema);
}

/** The record whose bytes are these. Throws what readRecord throws. */
export function storedRecord<S extends z.ZodType>(key: string, bytes: Uint8Array, schema: S): Stored<z.infer<S>> {
  return { key, digest: sha256(bytes), record: parseRecord(key, bytes, schema) };
}

/** Does what readRecord does; an absent record is a PauseError `MissingRecord`. */
export async function needRecord<S extends z.ZodType>(
  store: Store,
  key: string,
  schema: S,
): Promise<Stored<z.infer<S>>> {
  const found = await readRecord(store, key, schema);
  if (found === undefined) throw damage('MissingRecord', key, 'expected a record, found nothing');
  return found;
}

/**
 * Canonical JSON with a `check`: the digest of the record without it. The check is needed because a record's key does
 * not depend on its content.
 */
export function encodeRecord(record: object): Uint8Array {
  return new TextEncoder().encode(`${canonicalJson({ ...record, check: digestOf(record) })}\n`);
}

/** The text that the store has of this record; undefined when this version would write it otherwise. */
export function recordText({ digest, record }: Pick<Stored<object>, 'digest' | 'record'>): string | undefined {
  const bytes = encodeRecord(record);
  return sha256(bytes) === digest ? new TextDecoder().decode(bytes) : undefined;
}

/**
 * Creates a decision, or adopts the existing one when `agrees` accepts it. Throws FencedError when another writer
 * decided differently.
 */
export async function decide<S extends z.ZodType>(
  store: Store,
  key: string,
  schema: S,
  record: z.infer<S>,
  agrees: (existing: z.infer<S>) => boolean,
): Promise<Stored<z.infer<S>> & { readonly adopted: boolean }> {
  const bytes = encodeRecord(Object(record));
  if ((await createDecision(store, key, bytes)) === 'created') {
    return { ...storedRecord(key, bytes, schema), adopted: false };
  }
  await refuseSealed(store, key);
  const existing = await needRecord(store, key, schema);
  if (!agrees(existing.record)) {
    throw new FencedError(`another writer has decided ${key} differently`, {
      where: key,
      hint: `It holds: ${JSON.stringify(existing.record).slice(0, 300)}`,
    });
  }
  return { ...existing, adopted: true };
}

const sealOrOther = z.union([batchSeal, updateSeal, z.unknown().transform(() => undefined)]);

/** Throws when the term is closed at this key: it accepts no further record. */
async function refuseSealed(store: Store, key: string): Promise<void> {
  const seal = (await needRecord(store, key, sealOrOther)).record;
  if (seal === undefined) return;
  throw new FencedError(`this writer lost ${seal.runId}: ${seal.owner} closed term ${seal.term} (${seal.reason})`, {
    where: key,
    hint: `petrel status ${seal.runId} shows who drives it now`,
  });
}

/** The conditional create of a decision, with fault points before and after it. */
export async function createDecision(store: Store, key: string, bytes: Uint8Array): Promise<'created' | 'exists'> {
  faultPoint('decide.before', decisionFacts(key));
  const outcome = await store.create(key, bytes);
  faultPoint('decide.after', decisionFacts(key));
  return outcome;
}

/** `runs/<id>/terms/<t>/<k>/batch.json` is the decision `batch` of iteration k. */
function decisionFacts(key: string) {
  const names = key.split('/');
  return {
    kind: (names.at(-1) ?? '').replace('.json', ''),
    runId: names[1] ?? '',
    iteration: Number(names.at(-2)) || 0,
  };
}

function parseRecord<S extends z.ZodType>(key: string, bytes: Uint8Array, schema: S): z.infer<S> {
  let text: string;
  let value: unknown;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    value = JSON.parse(text);
  } catch (cause) {
    throw damage('DamagedRecord', key, 'not JSON', undefined, cause);
  }
  const format = typeof value === 'object' && value !== null && 'format' in value ? value.format : undefined;
  if (typeof format === 'number' && format > shardedFormat) {
    throw new TerminalError('NewerFormat', `${key}: format ${format}, this petrel reads up to ${shardedFormat}`, {
      where: key,
      hint: 'Use the petrel version that wrote it, or a newer one',
    });
  }
  if (!isAsWritten(text, value)) throw damage('DamagedRecord', key, 'its content does not match its checksum');
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const first = parsed.error.issues[0];
  throw damage('DamagedRecord', key, `${first?.path.join('.') ?? ''}: ${first?.message ?? 'not a record'}`);
}

/**
 * Is this the text of encodeRecord? The text is compared too: a flipped bit in the last digit of a number can give
 * another text for the same number. Records from the first weeks have no check.
 */
function isAsWritten(text: string, value: unknown): boolean {
  if (typeof value !== 'object' || value === null || !('check' in value)) return true;
  const { check, ...record } = value;
  try {
    return check === digestOf(record) && text.trimEnd() === canonicalJson(value);
  } catch {
    return false; // petrel writes only records that have a canonical form
  }
}
