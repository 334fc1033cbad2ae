/** Makes the file with which machines join a pool: `petrel fleet token`. */
import { randomBytes } from 'node:crypto';
import { InvalidInputError } from '../../core/errors.ts';
import { joinFile } from '../../core/wire/join.ts';
import type { JoinFile } from '../../core/wire/join.ts';
import { wireVersion } from '../../core/wire/messages.ts';
import { issueUser } from '../nats/access/authority.ts';
import { newNatsKey, publicNkey } from '../nats/nkey.ts';
import { joinPermissions } from '../nats/access/permissions.ts';

export interface TokenOptions extends Pick<JoinFile, 'pool' | 'roles' | 'engines' | 'store' | 'stack' | 'nats'> {
  /** Account of the workers. */
  readonly account: { readonly seed: string };
  readonly expiresAt: Date;
  /** Id of a launch; default: a random id. */
  readonly id?: string | undefined;
  readonly nonce?: string | undefined;
  readonly lonelySeconds?: number | undefined;
  readonly ownScorers?: 'open' | undefined;
}

export async function newJoinFile({ account, expiresAt, ...of }: TokenOptions): Promise<JoinFile> {
  const id = of.id ?? `token-${randomBytes(6).toString('hex')}`;
  const key = newNatsKey();
  const permissions = joinPermissions({ pool: of.pool, roles: of.roles, asker: id });
  const jwt = await issueUser(account, { name: id, key: publicNkey(key), permissions, expiresAt });
  return { v: wireVersion, ...of, id, credential: { key, jwt }, expires: expiresAt.toISOString() };
}

/** Throws InvalidInputError for text that is no such file, and for one that has expired by this machine's clock. */
export function parseJoinFile(text: string, path: string, now = new Date()): JoinFile {
  const hint = 'petrel fleet token --pool NAME > FILE on the control machine makes one';
  let file: JoinFile | undefined;
  try {
    file = joinFile.safeParse(JSON.parse(text)).data;
  } catch {
    file = undefined; // not JSON
  }
  if (file === undefined)
    throw new InvalidInputError('expected a join file, got something else', { where: path, hint });
  if (Date.parse(file.expires) > now.getTime()) return file;
  throw new InvalidInputError(
    `expected a token that is still valid, got one of the pool ${file.pool} that expired at ${file.expires}`,
    {
      where: path,
      hint: `petrel fleet token --pool ${file.pool} on the control machine makes a new one`,
    },
  );
}
