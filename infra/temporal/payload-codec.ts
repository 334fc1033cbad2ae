/**
 * Encrypts everything that is sent to the Temporal server: arguments, results, signals, queries, memos and details of
 * failures. The local server accepts every client on the machine, so only the key distinguishes this stack's messages
 * from those of other users.
 *
 * An encrypted payload's data: nonce (12 bytes), tag (16 bytes), and AES-256-GCM of [length of the metadata as JSON
 * (2 bytes, little-endian), metadata, data] of the original payload, deflated. Payloads are compressed because they are
 * mostly digests in hexadecimal, and Temporal limits the size of a history. Plain JSON, the usual kind, is written with
 * empty metadata.
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import type { Payload, PayloadCodec } from '@temporalio/common';
import { foreignPayload } from '../../core/wire/foreign.ts';

const cipher = 'aes-256-gcm';
const keyBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;
const lengthBytes = 2;
/** Packed metadata of a payload of plain JSON. */
const plainJson = JSON.stringify([['encoding', 'json/plain']]);
/** What most payloads contain. Deflate refers to it; with another dictionary, stored payloads could not be read. */
const dictionary = Buffer.from(
  '{"term":1,"pending":false,"iterations":,"valOnly":false,"batch":"","manifest":"checkpoints/","fact":"' +
    '{"position":1,"wish":"run","evaluationDue":false}{"runId":"-20260101-000000-","store":"file:///tmp/petrel",' +
    '"position":1,"facts":{"rollouts":"","rewards":""}}',
);
/** Encoding that an encrypted payload's metadata name. */
export const encryptedEncoding = 'binary/sealed';
const encoding = bytes(encryptedEncoding);

const foreign: Payload = {
  metadata: { encoding: bytes('json/plain') },
  data: bytes(JSON.stringify(foreignPayload)),
};

/** A new key, in base64. */
export function newPayloadKey(): string {
  return randomBytes(keyBytes).toString('base64');
}

/**
 * `key`: from `newPayloadKey`. A payload that was encrypted with another key, or not at all, is decoded to the mark
 * `foreignPayload`.
 */
export function payloadCodec(key: string): PayloadCodec {
  const secret = Buffer.from(key, 'base64');
  if (secret.length !== keyBytes)
    throw new RangeError(`a payload key has ${keyBytes} bytes, this has ${secret.length}`);
  return {
    encode: async (payloads) => payloads.map((payload) => encrypt(secret, payload)),
    decode: async (payloads) => payloads.map((payload) => decrypt(secret, payload)),
  };
}

function encrypt(key: Buffer, { metadata, data }: Payload): Payload {
  const nonce = randomBytes(nonceBytes);
  const sealing = createCipheriv(cipher, key, nonce);
  const head = Buffer.from(packMetadata(metadata ?? {}));
  const length = Buffer.alloc(lengthBytes);
  length.writeUInt16LE(head.length);
  // A workflow that returns nothing has a payload without data, for which protobufjs gives an empty list.
  const original = Buffer.concat([length, head, data?.length ? data : new Uint8Array()]);
  const sealed = [sealing.update(deflateRawSync(original, { dictionary })), sealing.final()];
  return { metadata: { encoding }, data: Buffer.concat([nonce, sealing.getAuthTag(), ...sealed]) };
}

function decrypt(key: Buffer, payload: Payload): Payload {
  const opened = open(key, payload);
  if (opened === undefined) return foreign;
  const end = lengthBytes + opened.readUInt16LE(0);
  return { metadata: unpackMetadata(opened.toString('utf8', lengthBytes, end)), data: opened.subarray(end) };
}

type Metadata = NonNullable<Payload['metadata']>;

function packMetadata(metadata: Metadata): string {
  const packed = JSON.stringify(Object.entries(metadata).map(([name, value]) => [name, text(value)]));
  return packed === plainJson ? '' : packed;
}

function unpackMetadata(packed: string): Metadata {
  const entries = JSON.parse(packed === '' ? plainJson : packed) as [string, string][];
  return Object.fromEntries(entries.map(([name, value]) => [name, bytes(value)]));
}

/** Undefined when the payload was not encrypted with this key. */
function open(key: Buffer, { metadata, data }: Payload): Buffer | undefined {
  const found = metadata?.['encoding'];
  if (!found || !data || text(found) !== text(encoding) || data.length < nonceBytes + tagBytes) return undefined;
  const opening = createDecipheriv(cipher, key, data.subarray(0, nonceBytes), { authTagLength: tagBytes });
  opening.setAuthTag(data.subarray(nonceBytes, nonceBytes + tagBytes));
  const first = opening.update(data.subarray(nonceBytes + tagBytes));
  try {
    return inflateRawSync(Buffer.concat([first, opening.final()]), { dictionary });
  } catch {
    return undefined; // the authentication tag does not match
  }
}

/** Metadata values are text: names of encodings and message types. */
function text(value: Uint8Array): string {
  return Buffer.from(value).toString('utf8');
}

function bytes(value: string): Uint8Array {
  return new TextEncoder().encode(value);
}
