/** Workflow histories as files: plain JSON, one line per event, bytes in base64. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Payload, PayloadCodec } from '@temporalio/common';
import { encryptedEncoding } from '../infra/temporal/payload-codec.ts';
import { packageRoot } from '../infra/home.ts';

const root = join(packageRoot(), 'tests/histories');

export interface StoredHistory {
  /** `1/rl-with-validation`: the version of the workflows, and the scenario. */
  readonly name: string;
  readonly history: { readonly events: readonly object[] };
}

export function storedHistories(): StoredHistory[] {
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.json'))
    .sort()
    .map((path) => ({
      name: path.slice(0, -'.json'.length),
      history: JSON.parse(readFileSync(join(root, path), 'utf8'), revive) as StoredHistory['history'],
    }));
}

/**
 * `events`: as a client fetches them, with payloads that `codec` encrypted. They are stored decrypted, because the key
 * is not kept.
 */
export async function storeHistory(
  version: string,
  name: string,
  events: readonly object[],
  codec: PayloadCodec,
): Promise<void> {
  mkdirSync(join(root, version), { recursive: true });
  const decrypted = await Promise.all(events.map((event) => withoutEncryption(event, codec)));
  const lines = decrypted.map((event) => JSON.stringify(plain(event)));
  writeFileSync(join(root, version, `${name}.json`), `{"events":[\n${lines.join(',\n')}\n]}\n`);
}

/** The same value with all payloads decrypted. */
async function withoutEncryption(value: unknown, codec: PayloadCodec): Promise<unknown> {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array || 'toNumber' in value) return value;
  if (Array.isArray(value)) return Promise.all(value.map((one) => withoutEncryption(one, codec)));
  if (isEncrypted(value)) return (await codec.decode([value]))[0];
  const entries = Object.entries(value).map(async ([key, one]) => [key, await withoutEncryption(one, codec)] as const);
  return Object.fromEntries(await Promise.all(entries));
}

function isEncrypted(value: object): value is Payload {
  const encoding = (value as Payload).metadata?.['encoding'];
  return encoding instanceof Uint8Array && Buffer.from(encoding).toString() === encryptedEncoding;
}

/** The value without classes and absent fields. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return { base64: Buffer.from(value).toString('base64') };
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  if ('toNumber' in value && typeof value.toNumber === 'function') return value.toNumber() as number;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, one]) => one !== null && one !== undefined)
      .map(([key, one]) => [key, plain(one)]),
  );
}

function revive(_key: string, value: unknown): unknown {
  return typeof value === 'object' && value !== null && 'base64' in value
    ? new Uint8Array(Buffer.from(String(value.base64), 'base64'))
    : value;
}
