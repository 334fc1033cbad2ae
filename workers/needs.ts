/** What a job needs from its worker, and what every job needs. */
import { mkdir } from 'node:fs/promises';
import { UnfitError } from '../core/errors.ts';
import { keys } from '../core/records/keys.ts';
import { numericProfile } from '../core/records/schema.ts';
import type { Store } from '../core/ports/store.ts';
import type { EngineFacts } from '../core/wire/engine-facts.ts';
import { shownUrl } from '../core/endpoint.ts';
import type { SamplingServer } from '../core/sampling-server.ts';
import { openServer } from '../infra/sampling-servers/requirements.ts';
import type { EngineSettings, RewardInput, RolloutInput } from '../core/wire/jobs/index.ts';
import type { JobMessage } from '../core/wire/messages.ts';
import { admitWorkHere } from '../log/objects/free-space.ts';
import { factsOf, requireServed, resolveProfile } from './engine/engines/profile.ts';
import type { Need } from './fitness.ts';
import { checkPackagesHere } from '../rewards/host/python-scorers.ts';
import { namedKey } from '../rewards/host/named-key.ts';
import { secretNames, secretOf } from '../rewards/host/secrets.ts';
import { isPythonScorer } from '../rewards/registry.ts';
import { openProgramPlace } from '../rewards/code/program.ts';
import { openWalls } from '../rewards/sandbox/open-walls.ts';
import { findPython } from '../rewards/sandbox/python.ts';

export interface NeedPorts {
  /** Folder for copies of models and scorers. */
  readonly cache: string;
  readonly openStore: (url: string) => Promise<Store>;
  /** What the worker's engines say of themselves; none in a worker that only scores. */
  readonly engines: readonly EngineFacts[];
  /**
   * The metadata service of this machine gives credentials to every program, so scorers of the user's own need a
   * sandbox.
   */
  readonly closedToScorers: boolean;
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

export function jobNeeds(message: JobMessage, ports: NeedPorts): Need[] {
  const { store, runId, input } = message;
  const secrets = secretNames([input['settings'], input['endpoint'], input['server']]);
  const profile = numericProfile.safeParse(input['profile']).data;
  const { engines } = ports;
  const { sampler, server } = (message.stage === 'rollout' ? input : {}) as Partial<RolloutInput>;
  const settings = message.stage === 'open' ? (input['engine'] as EngineSettings | undefined) : undefined;
  return [
    {
      name: `the store ${store}`,
      check: () => ports.openStore(store),
      // An open store stays open when the credentials change, so it must answer a request.
      checkAgain: async () => (await ports.openStore(store)).get(keys.run(runId)),
    },
    ...(ports.closedToScorers && message.stage === 'reward' && isOpenScorer(message.input) ? [noOpenScorer] : []),
    ...scorerNeeds(message),
    ...secrets.map((name) => ({ name: `the variable ${name}`, check: async () => secretOf(name, process.env) })),
    ...(profile === undefined || engines.length === 0
      ? []
      : [
          {
            name: `the numeric profile ${profile.id}, ${profile.compute}`,
            // A sampler that is no trainer needs nothing of the run's trainer.
            check: async () =>
              sampler === undefined || sampler === profile.engine
                ? requireServed(profile, engines)
                : factsOf(sampler, engines),
          },
        ]),
    ...(server === undefined ? [] : [serverNeed(server)]),
    ...(settings?.deterministic !== true || engines.length === 0
      ? []
      : [
          {
            name: `the numeric profile of a deterministic run, ${settings.compute}`,
            check: async () => resolveProfile(settings, engines),
          },
        ]),
  ];
}

/** A server at `rollout.url` that samples. The job itself finds that it is gone; then it is asked until it is back. */
const serverNeed = (server: SamplingServer): Need => ({
  name: `the server ${shownUrl(server.url)}`,
  check: async () => undefined,
  checkAgain: () => openServer(server, namedKey(server.apiKey, process.env)).label(),
});

/** Does the job run a scorer of the user's own without a sandbox around it? */
export function isOpenScorer({ scorer, sandbox }: Partial<Pick<RewardInput, 'scorer' | 'sandbox'>>): boolean {
  return scorer?.type === 'module' && sandbox !== true;
}

const noOpenScorer: Need = {
  name: 'a sandbox around a scorer that is not petrel’s',
  check: () =>
    Promise.reject(
      new UnfitError(
        'OpenScorer',
        'a scorer of your own could get the credentials of this bought machine from its metadata service',
        { hint: 'reward.sandbox=true, or own_scorers: open in the pool of fleet.yaml' },
      ),
    ),
};

const packages = 'the Python packages of scorers';
const sandbox = 'a sandbox';

/** Needs of a reward job: the packages of built-in scorers in Python, and a sandbox. */
function scorerNeeds({ stage, runId, input }: JobMessage): Need[] {
  if (stage !== 'reward') return [];
  const { scorer, settings, sandbox: walled } = input as Partial<RewardInput>;
  if (scorer?.type === 'module') return walled === true ? [walledNeed(scorer.fileName.endsWith('.py'))] : [];
  const { name } = scorer ?? {};
  if (scorer === undefined || (name !== undefined && isUndemanding(name, settings))) return [];
  if (name === undefined) return [packagesNeed('of some rows'), programsNeed].map((need) => foundByRows(need, runId));
  return [isPythonScorer(name) ? packagesNeed(name) : programsNeed];
}

/** Does the scorer work on every machine? */
function isUndemanding(name: string, settings: RewardInput['settings'] | undefined): boolean {
  return name === 'code' ? settings?.['sandbox_fusion'] !== undefined : !isPythonScorer(name);
}

const packagesNeed = (scorer: string): Need => ({ name: packages, check: async () => checkPackagesHere(scorer) });

const programsNeed: Need = { name: `${sandbox} for programs of the model`, check: async () => openProgramPlace() };

const walledNeed = (isPython: boolean): Need => ({
  name: `${sandbox} for a ${isPython ? 'Python scorer' : 'scorer'}`,
  check: async () => [openWalls(), isPython && findPython()],
});

/**
 * When rows choose their scorers, the first job whose rows have the need shows it. From then on the run's jobs have it,
 * and those of other runs do not.
 */
function foundByRows({ name, check }: Need, runId: string): Need {
  return { name: `${name}, for rows of ${runId}`, check: async () => undefined, checkAgain: check };
}

/** How the name of the need begins that an error is about. */
const needNames: Readonly<Record<string, string>> = {
  CannotReproduce: 'the numeric profile',
  CannotCompute: 'the numeric profile',
  OtherEngine: 'the numeric profile',
  UnprovenBits: 'the numeric profile',
  NoScorerPackages: packages,
  NoSandbox: sandbox,
  NoPython: sandbox,
  OpenScorer: noOpenScorer.name,
  ServerDown: 'the server',
};

/** The need that explains this error of a job, if any. */
export function missedNeed(error: UnfitError, message: JobMessage, ports: NeedPorts): Need | undefined {
  if (error.code === 'DiskFull') return roomNeed(ports.cache);
  const named = needNames[error.code] ?? 'the store';
  return jobNeeds(message, ports).find(({ name }) => name.startsWith(named));
}

const short = (build: string) => build.slice(0, 12);
