/** What a machine that has joined keeps in its PETREL_HOME: its key, and the session that its worker process reads. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { roles } from '../../core/roles.ts';
import { poolName } from '../../core/wire/join.ts';
import { readHomeJson, writeHomeJson } from '../home-json.ts';
import { newNatsKey } from '../nats/nkey.ts';

const session = z.object({
  nats: z.object({ url: z.string(), ca: z.string() }),
  credential: z.object({ key: z.string(), jwt: z.string() }),
  instance: z.string(),
  pool: poolName,
  roles: z.array(z.enum(roles)),
  store: z.string(),
  stackInstance: z.string(),
  build: z.string(),
  /** Limit of a bought machine (core/wire/join.ts). */
  lonelySeconds: z.number().positive().optional(),
  ownScorers: z.literal('open').optional(),
});
export type JoinedSession = Readonly<z.infer<typeof session>>;

/** Environment variable of a joined worker's process: path of its session. */
export const sessionVariable = 'PETREL_JOINED';

/** A worker that must run another build ends with this code. */
export const rejoinCode = 75;

export function writeSession(home: string, value: JoinedSession): string {
  mkdirSync(home, { recursive: true, mode: 0o700 });
  const path = join(home, 'joined.json');
  writeHomeJson(path, value);
  return path;
}

/** Throws when the file is damaged: it was written just before. */
export const readSession = (path: string): JoinedSession => session.parse(readHomeJson(path));

/** The machine's private key, the same over restarts; made at the first call. */
export function machineKey(home: string): string {
  const path = join(home, 'machine-key.json');
  const known = z.object({ key: z.string() }).safeParse(readHomeJson(path)).data;
  if (known !== undefined) return known.key;
  const key = newNatsKey();
  mkdirSync(home, { recursive: true, mode: 0o700 });
  writeHomeJson(path, { key });
  return key;
}
