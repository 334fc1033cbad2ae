/**
 * `stack.yaml`: servers that exist already, instead of embedded ones. docs/stack.md describes the file. What it says is kept with the
 * stack's configuration when the stack starts, secrets too, in files that only the user of PETREL_HOME can read.
 */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { InvalidInputError } from '../../core/errors.ts';
import { natsCredential, readCredentials } from '../nats/nkey.ts';

/** Environment variable: path of the file; default: `stack.yaml` in PETREL_HOME. */
export const serversVariable = 'PETREL_STACK_CONFIG';

const path = z.string().min(1);
const file = z.strictObject({
  temporal: z
    .strictObject({
      address: z.string().regex(/^[^\s/:]+:\d+$|^\[[^\]]+\]:\d+$/, 'expected host:port'),
      namespace: z.string().min(1).default('default'),
      tls: z.boolean().optional(),
      api_key: z
        .string()
        .regex(/^env:[A-Za-z_][A-Za-z0-9_]*$/, 'expected env:NAME, the environment variable with the key')
        .optional(),
    })
    .optional(),
  nats: z
    .strictObject({
      urls: z.array(z.string().regex(/^(nats|tls):\/\/[^\s/,]+:\d+$/, 'expected nats://host:port')).min(1),
      credentials: path.optional(),
      system_credentials: path.optional(),
      ca: path.optional(),
      replicas: z.union([z.literal(1), z.literal(3), z.literal(5)]).optional(),
    })
    .optional(),
});

/** Servers that the stack uses and does not own. */
export const ownedByOthers = z.object({
  temporal: z
    .object({
      address: z.string(),
      namespace: z.string(),
      tls: z.boolean().optional(),
      apiKey: z.string().optional(),
    })
    .optional(),
  nats: z
    .object({
      /** Of all servers of the cluster, with commas between. */
      url: z.string(),
      credential: natsCredential.optional(),
      system: natsCredential.optional(),
      /** Certificate, PEM. */
      ca: z.string().optional(),
      /** Copies of each stream. */
      replicas: z.int(),
    })
    .optional(),
});
export type OwnedByOthers = Readonly<z.infer<typeof ownedByOthers>>;

/** Undefined where there is no such file: all servers are embedded. Throws InvalidInputError that names the file and the key. */
export function readServers(home: string, env: NodeJS.ProcessEnv = process.env): OwnedByOthers | undefined {
  const named = env[serversVariable];
  const where = named === undefined ? join(home, 'stack.yaml') : resolve(named);
  if (named === undefined && !existsSync(where)) return undefined;
  const { temporal, nats } = readFile(where);
  const pem = (key: string, name: string | undefined) =>
    name === undefined ? undefined : readText(resolve(dirname(where), name), where, key);
  const credential = (key: string, name: string | undefined) => {
    const text = pem(key, name);
    if (text === undefined) return undefined;
    const found = readCredentials(text);
    if (found !== undefined) return found;
    throw new InvalidInputError(`expected a credentials file of NATS, with a user JWT and its seed, got ${name}`, {
      where: `${where}: ${key}`,
      hint: 'nsc generate creds --account ACCOUNT --name USER',
    });
  };
  const parts = {
    ...(temporal && { temporal: withKey(temporal, where, env) }),
    ...(nats && {
      nats: {
        url: nats.urls.join(','),
        credential: credential('nats.credentials', nats.credentials),
        system: credential('nats.system_credentials', nats.system_credentials),
        ca: pem('nats.ca', nats.ca),
        replicas: nats.replicas ?? (nats.urls.length >= 3 ? 3 : 1),
      },
    }),
  };
  return ownedByOthers.parse(JSON.parse(JSON.stringify(parts))); // without keys that are undefined
}

type ServersFile = z.infer<typeof file>;

function readFile(where: string): ServersFile {
  let value: unknown;
  const text = readText(where, where, undefined);
  try {
    value = parse(text);
  } catch (cause) {
    const line = cause instanceof Error ? cause.message.split('\n')[0] : String(cause);
    throw new InvalidInputError(`expected YAML: ${line}`, { where, cause });
  }
  const checked = file.safeParse(value ?? {});
  if (checked.success) return checked.data;
  const [issue] = checked.error.issues;
  throw new InvalidInputError(`${issue?.path.join('.') || 'the file'}: ${issue?.message}`, {
    where,
    hint: 'docs/stack.md shows a stack.yaml',
  });
}

function withKey(
  { address, namespace, tls, api_key: name }: NonNullable<ServersFile['temporal']>,
  where: string,
  env: NodeJS.ProcessEnv,
) {
  if (name === undefined) return { address, namespace, tls };
  const variable = name.slice('env:'.length);
  const apiKey = env[variable];
  if (apiKey !== undefined && apiKey !== '') return { address, namespace, tls, apiKey };
  throw new InvalidInputError(`expected the key in the environment variable ${variable}, which is not set`, {
    where: `${where}: temporal.api_key`,
    hint: `export ${variable}=…`,
  });
}

function readText(name: string, where: string, key: string | undefined): string {
  try {
    return readFileSync(name, 'utf8');
  } catch (cause) {
    throw new InvalidInputError(`expected a readable file, got ${name}`, {
      where: key === undefined ? where : `${where}: ${key}`,
      hint: `docs/stack.md shows a stack.yaml`,
      cause,
    });
  }
}
