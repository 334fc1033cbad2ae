/**
 * Keys of NATS clients (nkeys: Ed25519). The server knows only public keys and receives a signature of its challenge.
 * So a program that takes over the server's port learns no secret. node:crypto signs, because the client library's own
 * JavaScript needs tens of milliseconds for a signature.
 */
import { createPrivateKey, createPublicKey, generateKeyPairSync, sign } from 'node:crypto';
import type { Authenticator } from '@nats-io/nats-core';
import { z } from 'zod';

/** A new private key: PKCS #8 in base64. */
export function newNatsKey(): string {
  return generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'der' }).toString('base64');
}

/** What a client authenticates with: its private key, and the JWT of its public key that the stack has signed. */
export const natsCredential = z.object({ key: z.string(), jwt: z.string() });
export type NatsCredential = Readonly<z.infer<typeof natsCredential>>;

/**
 * An authenticator that signs the server's challenge. A function is called for each connection: a JWT may be renewed.
 */
export function natsAuthenticator(credential: NatsCredential | (() => NatsCredential)): Authenticator {
  return (nonce = '') => {
    const { key, jwt } = typeof credential === 'function' ? credential() : credential;
    const sig = sign(null, Buffer.from(nonce), privateKeyOf(key)).toString('base64url');
    return { nkey: publicNkey(key), jwt, sig };
  };
}

/** A credentials file, as `nsc` writes it: a user JWT and the seed of its key. Undefined when it is none. */
export function readCredentials(text: string): NatsCredential | undefined {
  const part = (name: string) => new RegExp(`-----BEGIN ${name}-----\\s+(\\S+)\\s+-+END ${name}-+`).exec(text)?.[1];
  const [jwt, seed] = [part('NATS USER JWT'), part('USER NKEY SEED')];
  const raw = seed === undefined ? undefined : rawSeed(seed);
  return jwt === undefined || raw === undefined ? undefined : { key: pkcs8Of(raw), jwt };
}

/** The 32 bytes of a user's seed `SU…`: behind two bytes that say what it is, before two of a checksum. */
function rawSeed(seed: string): Buffer | undefined {
  const values = [...seed].map((letter) => alphabet.indexOf(letter));
  if (!seed.startsWith('SU') || values.includes(-1)) return undefined;
  const bits = values.map((value) => value.toString(2).padStart(5, '0')).join('');
  const bytes = Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
  if (bytes.length !== 36 || crc16(bytes.subarray(0, 34)) !== bytes.readUInt16LE(34)) return undefined;
  return bytes.subarray(2, 34);
}

/** RFC 8410: an Ed25519 private key as PKCS #8, in base64. */
const pkcs8Of = (raw: Buffer): string =>
  Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), raw]).toString('base64');

/** The public key in the form of the server's configuration: `U…`. */
export function publicNkey(key: string): string {
  const { x = '' } = createPublicKey(privateKeyOf(key)).export({ format: 'jwk' });
  const named = Buffer.concat([Buffer.of(userPrefix), Buffer.from(x, 'base64url')]);
  const checksum = Buffer.alloc(2);
  checksum.writeUInt16LE(crc16(named));
  return base32(Buffer.concat([named, checksum]));
}

function privateKeyOf(key: string) {
  return createPrivateKey({ key: Buffer.from(key, 'base64'), format: 'der', type: 'pkcs8' });
}

/** The prefix byte of a user key: its first five bits are the letter U in base 32. */
const userPrefix = 20 << 3;

/** CRC-16/XMODEM. */
function crc16(bytes: Uint8Array): number {
  let crc = 0;
  for (const byte of bytes) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = ((crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1) & 0xffff) >>> 0;
  }
  return crc;
}

/** RFC 4648, without padding. */
function base32(bytes: Uint8Array): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('');
  const letters = bits.match(/.{1,5}/g) ?? [];
  return letters.map((five) => alphabet[Number.parseInt(five.padEnd(5, '0'), 2)]).join('');
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
