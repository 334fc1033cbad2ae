/**
 * `stack.yaml`: servers that exist already, instead of embedded ones. docs/do/stack.md describes the file. What it says
 * is kept with the stack's configuration when the stack starts, secrets too, in files that only the user of PETREL_HOME
 * can read.
 */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { InvalidInputError } from '../../core/errors.ts';
import { natsCredential, readCredentials } from '../nats/nkey.ts';
import { storeUrl } from '../store/open.ts';
import { parseYaml } from '../yaml.ts';

/** Environment variable: path of the file; default: `stack.yaml` in PETREL_HOME. */
export const serversVariable = 'PETREL_STACK_CONFIG';

const path = z.string().min(1);
const file = z.strictObject({
  name: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/, 'expected a name of letters, digits, dots, - and _')
    .optional(),
  store: path.optional(),
  key: path.optional(),
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

/** Servers that the stack uses and does not own, and what makes several machines one stack. */
export const ownedByOthers = z.object({
  /** One stack on several control machines; absent: the stack of this machine. */
  shared: z
    .object({
      name: z.string(),
      /** URL of the store that says which runs the stack drives. */
      store: z.string(),
      /** 32 bytes, hexadecimal. */
      key: z.string(),
    })
    .optional(),
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
      /** URLs of all servers of the cluster, with commas between. */
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
export type SharedStack = NonNullable<OwnedByOthers['shared']>;

/**
 * Undefined where there is no such file: all servers are embedded. Throws InvalidInputError that names the file and the
 * key.
 */
export function readServers(home: string, env: NodeJS.ProcessEnv = process.env): OwnedByOthers | undefined {
  const named = env[serversVariable];
  const where = named === undefined ? join(home, 'stack.yaml') : resolve(named);
  if (named === undefined && !existsSync(where)) return undefined;
  const found = readFile(where);
  const { temporal, nats } = found;
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
    shared: sharedBy(found, where),
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
  const { value } = parseYaml(readText(where, where, undefined), where);
  const checked = file.safeParse(value ?? {});
  if (checked.success) return checked.data;
  const [issue] = checked.error.issues;
  throw new InvalidInputError(`${issue?.path.join('.') || 'the file'}: ${issue?.message}`, {
    where,
    hint: 'docs/do/stack.md shows a stack.yaml',
  });
}

/** Undefined for the stack of one machine. */
function sharedBy({ name, store, key, temporal, nats }: ServersFile, where: string): SharedStack | undefined {
  const given = { name, store, key };
  const missing = Object.entries(given).flatMap(([word, value]) => (value === undefined ? [word] : []));
  if (name === undefined && store === undefined && key === undefined) return undefined;
  if (name === undefined || store === undefined || key === undefined)
    throw new InvalidInputError(
      `expected name, store and key together, or none of them; missing: ${missing.join(', ')}`,
      {
        where,
        hint: 'together they make several control machines one stack: docs/do/stack.md',
      },
    );
  const own = temporal === undefined ? 'temporal' : nats === undefined ? 'nats' : undefined;
  if (own !== undefined)
    throw new InvalidInputError(
      `a stack with name, store and key has servers that each of its control machines reaches; missing: ${own}`,
      { where, hint: `name the ${own} servers, or remove name, store and key: docs/do/stack.md` },
    );
  const isUrl = /^[a-z][a-z0-9+.-]*:/i.test(store);
  return {
    name,
    store: storeUrl(isUrl ? store : resolve(dirname(where), store)),
    key: readKey(resolve(dirname(where), key), where),
  };
}

function readKey(name: string, where: string): string {
  const text = readText(name, where, 'key').trim().toLowerCase();
  if (/^[0-9a-f]{64}$/.test(text)) return text;
  throw new InvalidInputError(`expected 32 random bytes in hexadecimal in ${name}`, {
    where: `${where}: key`,
    hint: `openssl rand -hex 32 > ${name}, and the same file on each control machine`,
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
      hint: key === 'key' ? `openssl rand -hex 32 > ${name}` : 'docs/do/stack.md shows a stack.yaml',
      cause,
    });
  }
}
