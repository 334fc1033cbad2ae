/**
 * The key of every object in the store, and the meaning of names. Only this file builds or parses a key. own-keys.ts
 * distinguishes petrel's names from a user's. The verifier (api/ledger/keys.ts) builds its keys independently on
 * purpose.
 */
import type { Digest, JobId, RunId } from '../ids.ts';

const run = (runId: RunId) => `runs/${runId}`;
const fleet = (stack: string) => `fleet/${stack}`;
const position = (runId: RunId, term: number, iteration: number) => `${run(runId)}/terms/${term}/${iteration}`;

export const keys = {
  runs: 'runs/',
  run: (runId: RunId) => `${run(runId)}/run.json`,
  tombstone: (runId: RunId) => `${run(runId)}/removed.json`,
  revision: (runId: RunId, n: number) => `${run(runId)}/revisions/${n}.json`,
  revisions: (runId: RunId) => `${run(runId)}/revisions/`,
  term: (runId: RunId, term: number) => `${run(runId)}/terms/${term}/term.json`,
  terms: (runId: RunId) => `${run(runId)}/terms/`,
  positions: (runId: RunId, term: number) => `${run(runId)}/terms/${term}/`,
  batch: (runId: RunId, term: number, iteration: number) => `${position(runId, term, iteration)}/batch.json`,
  update: (runId: RunId, term: number, iteration: number) => `${position(runId, term, iteration)}/update.json`,
  evaluation: (runId: RunId, term: number, iteration: number) => `${position(runId, term, iteration)}/eval.json`,
  result: (runId: RunId, jobId: JobId) => `${run(runId)}/results/${jobId}.json`,
  /** `by`: the run id of a fork that still reads this run. */
  pin: (runId: RunId, by: RunId) => `${run(runId)}/pins/${by}.json`,
  pins: (runId: RunId) => `${run(runId)}/pins/`,
  checkpoints: (runId: RunId) => `${run(runId)}/checkpoints/`,
  checkpoint: (runId: RunId, iteration: number, state: Digest) =>
    `${run(runId)}/checkpoints/${iteration}-${state}.json`,
  weights: (runId: RunId, weights: Digest) => `${run(runId)}/weights/${weights}.json`,
  blob: (runId: RunId, digest: Digest) => `${run(runId)}/blobs/${digest}`,
  retention: (runId: RunId, n: number) => `${run(runId)}/retention/${n}.json`,
  retentions: (runId: RunId) => `${run(runId)}/retention/`,
  status: (runId: RunId, n: number) => `${run(runId)}/status/${n}.json`,
  statuses: (runId: RunId) => `${run(runId)}/status/`,
  log: (runId: RunId, source: string) => `${run(runId)}/logs/${source}`,
  logs: (runId: RunId) => `${run(runId)}/logs/`,
  /** Metrics of a range of iterations, as the log has them whose last iteration is in the folder of this term. */
  metricChunk: (runId: RunId, { first, last }: { readonly first: number; readonly last: number }, term: number) =>
    `${run(runId)}/columns/${first}-${last}-${term}.json`,
  metricChunks: (runId: RunId) => `${run(runId)}/columns/`,
  blobs: (runId: RunId) => `${run(runId)}/blobs/`,
  allWeights: (runId: RunId) => `${run(runId)}/weights/`,
  results: (runId: RunId) => `${run(runId)}/results/`,
  all: (runId: RunId) => `${run(runId)}/`,
  schedules: 'schedules/',
  schedule: (name: string, n: number) => `schedules/${name}/records/${n}.json`,
  firing: (name: string, n: number) => `schedules/${name}/firings/${n}.json`,
  scheduleBlob: (name: string, digest: Digest) => `schedules/${name}/blobs/${digest}`,
  modelFolder: (digest: Digest) => `models/${digest}/`,
  datasetFolder: (digest: Digest) => `datasets/${digest}/`,
  model: (digest: Digest, file: string) => `models/${digest}/${file}`,
  dataset: (digest: Digest, file: string) => `datasets/${digest}/${file}`,
  /** The janitor's decisions about models and datasets. */
  allInputs: 'janitor/',
  inputs: (n: number) => `janitor/${n}.json`,
  claimKey: 'claims/key.json',
  fleets: 'fleet/',
  /** What a stack wants of its fleet, a dense sequence. */
  fleet: (stack: string, n: number) => `${fleet(stack)}/wanted/${n}.json`,
  /** Launches of a pool, a dense sequence of decisions, and what the provider answered. */
  launch: (stack: string, pool: string, n: number) => `${fleet(stack)}/launches/${pool}/${n}/decision.json`,
  launches: (stack: string, pool: string) => `${fleet(stack)}/launches/${pool}/`,
  launchAnswer: (stack: string, pool: string, n: number) => `${fleet(stack)}/launches/${pool}/${n}/answer.json`,
  launchedPools: (stack: string) => `${fleet(stack)}/launches/`,
  instanceJoined: (stack: string, id: string) => `${fleet(stack)}/instances/${id}/joined.json`,
  instanceReady: (stack: string, id: string) => `${fleet(stack)}/instances/${id}/ready.json`,
  instanceLeaving: (stack: string, id: string) => `${fleet(stack)}/instances/${id}/leaving.json`,
  instanceEnded: (stack: string, id: string) => `${fleet(stack)}/instances/${id}/ended.json`,
  usage: (stack: string, day: string, name: string) => `${fleet(stack)}/usage/${day}/${name}.json`,
  usages: (stack: string, day: string) => `${fleet(stack)}/usage/${day}/`,
  usageDays: (stack: string) => `${fleet(stack)}/usage/`,
  /** Which stack has this name, a dense sequence. */
  stackClaim: (name: string, n: number) => `stacks/${name}/claims/${n}.json`,
  /** Key of a note that a stack of several machines drives a run; each run has at least one note. */
  drivenRun: (stack: string, runId: RunId, note: string) => `stacks/${stack}/driven/${runId}/${note}.json`,
  drivenRunNotes: (stack: string, runId: RunId) => `stacks/${stack}/driven/${runId}/`,
  drivenRuns: (stack: string) => `stacks/${stack}/driven/`,
  /** A build of petrel for machines that join: its list of files, whose digest is the build's, and the files. */
  build: (digest: Digest) => `builds/${digest}.json`,
  buildFile: (digest: Digest) => `builds/files/${digest}`,
} as const;

/** Folders of objects that may be too large for one request. */
export const largeFolders = ['runs/', 'models/', 'datasets/'] as const;

/** `name` without the slash at the end of a folder's name in a listing. */
export const folderName = (name: string): string => name.replace(/\/$/, '');

/** The number in a name such as `7`, `7/` or `7.json`; undefined for another name. */
export function numberIn(name: string): number | undefined {
  const digits = /^(\d+)(?:\/|\.json)?$/.exec(name)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** Position and state of a checkpoint, parsed from the name or key of its manifest; undefined for another name. */
export function checkpointIn(name: string): { readonly iteration: number; readonly stateDigest: Digest } | undefined {
  const [, iteration, stateDigest] = /(?:^|\/checkpoints\/)(\d+)-([0-9a-f]{64})\.json$/.exec(name) ?? [];
  return iteration === undefined || stateDigest === undefined
    ? undefined
    : { iteration: Number(iteration), stateDigest };
}

/** Range and term of a chunk of metrics, parsed from its name; undefined for another name. */
export function metricChunkIn(
  name: string,
): { readonly first: number; readonly last: number; readonly term: number } | undefined {
  const [first, last, term] = (/^(\d+)-(\d+)-(\d+)\.json$/.exec(name) ?? []).slice(1).map(Number);
  return first === undefined || last === undefined || term === undefined ? undefined : { first, last, term };
}

/** The digest in a manifest's name (`<digest>.json`); undefined for another name. */
export const weightsIn = (name: string): Digest | undefined => /^([0-9a-f]{64})\.json$/.exec(name)?.[1];

/** The fork that created a pin (`<run id>.json`). */
export const pinnedBy = (name: string): RunId => name.replace(/\.json$/, '');

/** The run of an object; undefined for an object outside the runs. */
export const runOf = (key: string): RunId | undefined => /^runs\/([^/]+)\//.exec(key)?.[1];
