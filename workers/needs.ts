/** What a job needs from its worker, and what every job needs. */
import { mkdir } from 'node:fs/promises';
import { z } from 'zod';
import { UnfitError } from '../core/errors.ts';
import { keys } from '../core/records/keys.ts';
import { numericProfile } from '../core/records/schema.ts';
import type { Store } from '../core/ports/store.ts';
import type { JobMessage } from '../core/wire/messages.ts';
import { admitWorkHere } from '../infra/store/free-space.ts';
import type { EngineFacts } from './engine/profile.ts';
import { engineOptionsOf } from './engine/profile.ts';
import type { Need } from './fitness.ts';
import { checkPackagesHere } from '../rewards/host/python-scorers.ts';
import { secretNames, secretOf } from '../rewards/host/secrets.ts';
import { isPythonScorer } from '../rewards/registry.ts';

export interface NeedPorts {
  /** Folder for copies of models and scorers. */
  readonly cache: string;
  readonly openStore: (url: string) => Promise<Store>;
  /** undefined in a worker that only scores. */
  readonly engine: EngineFacts | undefined;
}

/** Free disk space for copies of models and scorers. */
export function roomNeed(cache: string): Need {
  const check = async () => {
    await mkdir(cache, { recursive: true });
    await admitWorkHere("petrel's cache", cache);
  };
  return { name: `room in ${cache}`, general: true, check };
}

/** A worker of another build might misinterpret jobs. `own`: the build of this process's code. */
export function buildNeed(own: string, ofStack: () => string): Need {
  const check = async () => {
    const wanted = ofStack();
    if (own === wanted) return;
    throw new UnfitError(
      'WrongBuild',
      `this worker runs build ${short(own)} of petrel, the stack runs ${short(wanted)}`,
      {
        hint: 'start the worker from the same build as the stack; petrel up replaces the processes of another build',
      },
    );
  };
  return { name: "the stack's build", general: true, check };
}

export function jobNeeds({ store, runId, input }: JobMessage, ports: NeedPorts): Need[] {
  const secrets = secretNames(input['settings']);
  const profile = numericProfile.safeParse(input['profile']).data;
  const { engine } = ports;
  return [
    {
      name: `the store ${store}`,
      check: () => ports.openStore(store),
      // An open store stays open when the credentials change, so it must answer a request.
      checkAgain: async () => (await ports.openStore(store)).get(keys.run(runId)),
    },
    ...packagesNeeds(input['scorer']),
    ...secrets.map((name) => ({ name: `the variable ${name}`, check: async () => secretOf(name, process.env) })),
    ...(profile === undefined || engine === undefined
      ? []
      : [
          {
            name: `the numeric profile ${profile.id}, ${profile.compute}`,
            check: async () => engineOptionsOf(profile, engine, 1),
          },
        ]),
  ];
}

const packages = 'the Python packages of scorers';

/**
 * Of built-in scorers. Where rows choose theirs, the job shows whether it needs the packages; from then on they must be
 * here.
 */
function packagesNeeds(scorer: unknown): Need[] {
  const { type, name } = z.looseObject({ type: z.string(), name: z.string().optional() }).safeParse(scorer).data ?? {};
  if (type !== 'builtin') return [];
  const check = async () => checkPackagesHere(name ?? 'of some rows');
  if (name === undefined) return [{ name: packages, check: async () => undefined, checkAgain: check }];
  return isPythonScorer(name) ? [{ name: packages, check }] : [];
}

/** The need that explains this error of a job, if any. */
export function missedNeed(error: UnfitError, message: JobMessage, ports: NeedPorts): Need | undefined {
  if (error.code === 'DiskFull') return roomNeed(ports.cache);
  const ofEngine = error.code === 'CannotReproduce' || error.code === 'CannotCompute';
  const named = ofEngine ? 'the numeric profile' : error.code === 'NoScorerPackages' ? packages : 'the store';
  return jobNeeds(message, ports).find(({ name }) => name.startsWith(named));
}

const short = (build: string) => build.slice(0, 12);
