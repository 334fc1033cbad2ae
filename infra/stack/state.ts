/** The stack's files under PETREL_HOME/stack: what runs, what should run, and where the servers listen. */
import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { InvalidInputError } from '../../core/errors.ts';
import { roles } from '../../core/roles.ts';
import { noticeSources } from '../fleet/notice.ts';
import { hostInUrl, loopback } from '../ports.ts';
import { natsAuthority } from '../nats/access/authority.ts';
import { serverCertificate } from '../nats/access/certificate.ts';
import { natsCredential } from '../nats/nkey.ts';
import { noteStoreOfStack } from '../store/places.ts';
import { listenAddress } from './listen.ts';
import { ownedByOthers } from './servers.ts';
import type { SharedStack } from './servers.ts';

const poolSchema = z.object({
  name: z.string().regex(/^[a-z0-9][a-z0-9-]*$/, 'a pool name has small letters, digits and -'),
  /** Worker processes. */
  count: z.int().min(0),
  roles: z.array(z.enum(roles)).min(1).readonly(),
  /** Compute threads per engine; default: an equal share of the machine's cores. */
  threads: z.int().min(1).optional(),
  /** Source, besides signals, of the notice that a machine of the pool will be preempted. */
  notice: z.enum(noticeSources).optional(),
});

/** Equal worker processes of the local fleet. */
export type WorkerPool = Readonly<z.infer<typeof poolSchema>>;

export const defaultPools: readonly WorkerPool[] = [
  { name: 'local', count: 1, roles: ['trainer', 'rollout', 'reward'] },
];

const configSchema = z.object({
  pools: z.array(poolSchema).readonly(),
  /** Absent: the servers are reached from this machine only. */
  listen: listenAddress.optional(),
  /** Servers of stack.yaml; the others are embedded. */
  servers: ownedByOthers.optional(),
  /** Scripts that Node runs instead of the built control and worker processes; for tests. */
  programs: z.object({ control: z.string(), worker: z.string() }).optional(),
});

/** The desired state of a stack. The supervisor watches this file, so writing it changes a running stack. */
export type StackConfig = Readonly<z.infer<typeof configSchema>>;

export const childKinds = ['temporal', 'nats', 'control', 'worker'] as const;
export type ChildKind = (typeof childKinds)[number];

const childSchema = z.object({
  name: z.string(),
  kind: z.enum(childKinds),
  /** `waiting`: it died and is restarted after a pause. Without a process there is no `pid`. */
  state: z.enum(['starting', 'ready', 'waiting', 'stopping', 'stopped']),
  pid: z.int().optional(),
  startTime: z.string().optional(),
  /** Differs when the command or the built code differs. */
  fingerprint: z.string(),
  restarts: z.int(),
  /** Deaths in a row without ever being ready. */
  failures: z.int(),
  lastExit: z.string().optional(),
  /** Why it is not ready, as far as it says so. */
  notYet: z.string().optional(),
});
export type ChildState = Readonly<z.infer<typeof childSchema>>;

const stackSchema = z.object({
  pid: z.int(),
  startTime: z.string(),
  startedAt: z.string(),
  build: z.string(),
  phase: z.enum(['running', 'stopping']),
  /** Stacks that an older build started have no credentials. */
  temporal: z.object({
    address: z.string(),
    namespace: z.string().optional(),
    tls: z.boolean().optional(),
    apiKey: z.string().optional(),
    payloadKey: z.string().optional(),
    /** A server that this stack does not own. */
    ofOthers: z.literal(true).optional(),
  }),
  nats: z.object({
    url: z.string(),
    ofOthers: z.literal(true).optional(),
    replicas: z.int().optional(),
    credential: natsCredential.optional(),
    system: natsCredential.optional(),
    /** Credential of the workers of this machine. */
    workers: natsCredential.optional(),
    ca: z.string().optional(),
  }),
  pools: z.array(poolSchema).readonly(),
  listen: listenAddress.optional(),
  /** Why machines cannot join at `listen` now. */
  away: z.string().optional(),
  children: z.array(childSchema).readonly(),
});

/** A running stack, as published in `stack.json`. `pid` and `startTime` are the supervisor's. */
export type StackInfo = Readonly<z.infer<typeof stackSchema>>;

const endpointsSchema = z.object({
  temporalPort: z.int(),
  natsPort: z.int(),
  /** Absent in files of older builds. */
  nats: z
    .object({
      authority: natsAuthority,
      stack: natsCredential,
      system: natsCredential,
      /** Permits what the workers of this instance need. */
      workers: natsCredential.extend({ instance: z.string() }),
    })
    .optional(),
  /** Present while other machines may join. */
  tls: serverCertificate.optional(),
  /** Key that encrypts payloads for Temporal. */
  payloadKey: z.string(),
});

/** The endpoints in the file; one of an older build has less. */
export type KeptEndpoints = Readonly<z.infer<typeof endpointsSchema>>;

/** Ports and secrets, kept over restarts so that clients find the servers again. */
export type Endpoints = KeptEndpoints & { readonly nats: NatsSecrets };

/** What the NATS server trusts, and the credentials of this stack's processes and commands. */
export type NatsSecrets = NonNullable<KeptEndpoints['nats']>;

/** The URL at which the NATS server listens. */
export const natsUrl = ({ natsPort, tls }: Pick<Endpoints, 'natsPort' | 'tls'>): string =>
  `nats://${hostInUrl(tls?.host ?? loopback)}:${natsPort}`;

/** Option of the supervisor's program: it replaces a dead supervisor, and ends when the stack was stopped meanwhile. */
export const onlyIfUp = '--only-if-up';

export const stackFolder = (home: string): string => join(home, 'stack');
export const stackFile = (home: string): string => join(stackFolder(home), 'stack.json');
export const configFile = (home: string): string => join(stackFolder(home), 'config.json');
export const lockFolder = (home: string): string => join(stackFolder(home), 'lock');
/** Folder of the queue's messages. */
export const natsFolder = (home: string): string => join(stackFolder(home), 'nats');
export const readyFile = (home: string, child: string): string => join(stackFolder(home), 'ready', child);
const endpointsFile = (home: string): string => join(stackFolder(home), 'endpoints.json');

export function makeStackFolder(home: string): void {
  mkdirSync(join(stackFolder(home), 'ready'), { recursive: true, mode: 0o700 });
  chmodSync(stackFolder(home), 0o700);
}

export const readStackFile = (path: string): StackInfo | undefined => readJson(path, stackSchema);
export const writeStackFile = (home: string, info: StackInfo): void => writeJson(stackFile(home), info);

/** Undefined when no stack of this home was ever configured. */
export const readConfig = (home: string): StackConfig | undefined => readJson(configFile(home), configSchema);

/** What makes this home one of several control machines; undefined for the stack of one machine. */
export const sharedStack = (home: string): SharedStack | undefined => readConfig(home)?.servers?.shared;

/** Throws `InvalidInput` for an invalid pool: a bad name, no roles, or a name that is used twice. */
export function writeConfig(home: string, config: StackConfig): void {
  const parsed = configSchema.safeParse(config);
  if (!parsed.success) throw new InvalidInputError(`worker pools: ${z.prettifyError(parsed.error)}`);
  const names = config.pools.map(({ name }) => name);
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined)
    throw new InvalidInputError(`two worker pools have the name ${twice}`, { hint: 'give each pool its own name' });
  makeStackFolder(home);
  writeJson(configFile(home), parsed.data);
  noteStoreOfStack(home, parsed.data.servers?.shared?.store);
}

export const readEndpoints = (home: string): KeptEndpoints | undefined =>
  readJson(endpointsFile(home), endpointsSchema);
export const writeEndpoints = (home: string, endpoints: Endpoints): void => writeJson(endpointsFile(home), endpoints);

/** Undefined when the file is absent, damaged or in another format: then nothing is known. */
function readJson<T>(path: string, schema: z.ZodType<T>): T | undefined {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  try {
    return schema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined; // not JSON
  }
}

/** Replaces the file atomically; mode 0600, because it contains keys. */
function writeJson(path: string, value: unknown): void {
  const temporary = `${path}.${process.pid}.tmp`;
  writeFileSync(temporary, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
  renameSync(temporary, path);
}
