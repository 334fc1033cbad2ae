/** The file with which machines join a pool of this stack. */
import { readFileSync, writeFileSync } from 'node:fs';
import { InvalidInputError } from '../../core/errors.ts';
import { poolName, usualRoles } from '../../core/wire/join.ts';
import type { JoinFile } from '../../core/wire/join.ts';
import { newJoinFile } from '../../infra/fleet/join-file.ts';
import { builtFile } from '../../infra/home.ts';
import { publicNkey } from '../../infra/nats/nkey.ts';
import { noteToken } from '../../infra/stack/fleet-register.ts';
import { readStack, stackName } from '../../infra/stack/index.ts';
import { readEndpoints } from '../../infra/stack/state.ts';
import { openStore, storeUrl } from '../../infra/store/open.ts';
import { defaultStore, rememberStore } from '../../infra/store/places.ts';
import type { ApiContext } from '../context.ts';
import { requireEngine } from '../engines/install.ts';
import { givenRoles } from './given-roles.ts';
import { requireOwnNats } from './own-nats.ts';

export interface TokenRequest {
  readonly pool: string;
  /** Roles of the pool's workers; default: all but that of a trainer. */
  readonly roles?: readonly string[];
  /** Engines that its machines install before they take jobs. */
  readonly engines?: readonly string[] | undefined;
  readonly ttlMs: number;
  /** Folder or URL; default: the store of this home. */
  readonly store?: string | undefined;
}

/**
 * Throws InvalidInputError for a bad pool, role, engine or lifetime, and when the stack does not listen for other
 * machines.
 */
export async function createFleetToken({ home }: ApiContext, request: TokenRequest): Promise<JoinFile> {
  const { pool, roles = usualRoles, ttlMs, store } = request;
  if (!poolName.safeParse(pool).success)
    throw new InvalidInputError(`--pool: expected small letters, digits and -, at most 40, got "${pool}"`);
  const known = givenRoles(roles);
  const engines = request.engines?.map((name) => requireEngine(name, '--engines'));
  const stack = readStack(home);
  requireOwnNats(stack);
  const authority = readEndpoints(home)?.nats?.authority;
  const hint = 'petrel up --listen ADDRESS, with an address at which the workers reach this machine';
  if (stack === undefined || authority === undefined)
    throw new InvalidInputError('expected a running stack that other machines can reach, found none', { hint });
  if (stack.away !== undefined) throw new InvalidInputError(`machines cannot join: ${stack.away}`, { hint });
  const { url, ca } = stack.nats;
  if (ca === undefined)
    throw new InvalidInputError(`expected a stack that other machines can reach, got one that listens at ${url} only`, {
      hint,
    });
  const served = storeUrl(store ?? defaultStore(home));
  await openStore(served); // the machines find it, and the stack's build in it
  rememberStore(home, served);
  const file = await newJoinFile({
    account: authority.workers,
    stack: stackName(home),
    nats: { url, ca },
    pool,
    roles: known,
    ...(engines !== undefined && { engines }),
    store: served,
    expiresAt: new Date(Date.now() + ttlMs),
  });
  noteToken(home, { id: file.id, pool, roles: known, key: publicNkey(file.credential.key), until: file.expires });
  return file;
}

/**
 * The program with which a machine that has Node and nothing else joins: the file's content is in it, so it is a
 * secret, too, until that expires. Creates `path`, which only the user can read. Throws InvalidInputError when
 * something is there.
 */
export function writeJoinProgram(path: string, file: JoinFile): void {
  const program = readFileSync(builtFile('programs/join.mjs'), 'utf8');
  const about = `// Joins the pool ${file.pool} of the stack ${file.stack}: node FILE [--threads N]. It is a secret until ${file.expires}.`;
  const text = `${about}\nglobalThis.petrelToken = ${JSON.stringify(file)};\n${program}`;
  try {
    writeFileSync(path, text, { flag: 'wx', mode: 0o600 });
  } catch (cause) {
    throw new InvalidInputError(`--program: expected the path of a new file, got ${path}`, {
      hint: 'name another file, in a folder that exists',
      cause,
    });
  }
}
