/**
 * Secrets that the control machines of one stack have in common: each is derived from the key of stack.yaml, with HKDF.
 */
import { hkdfSync } from 'node:crypto';

/** What a secret is for: two purposes get secrets that say nothing about each other. */
export type Purpose = 'stack id' | 'payloads for Temporal' | 'driven runs';

/** `key`: hexadecimal, as in stack.yaml's file. */
export const derivedKey = (key: string, purpose: Purpose, bytes: number): Buffer =>
  Buffer.from(hkdfSync('sha256', Buffer.from(key, 'hex'), '', `petrel ${purpose}`, bytes));
