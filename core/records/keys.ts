/** Where every object lies in the store. The only place that spells a key. */
import type { Digest, JobId, RunId } from '../ids.ts';

const run = (runId: RunId) => `runs/${runId}`;
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
  status: (runId: RunId, n: number) => `${run(runId)}/status/${n}.json`,
  statuses: (runId: RunId) => `${run(runId)}/status/`,
  log: (runId: RunId, source: string) => `${run(runId)}/logs/${source}`,
  logs: (runId: RunId) => `${run(runId)}/logs/`,
  blobs: (runId: RunId) => `${run(runId)}/blobs/`,
  allWeights: (runId: RunId) => `${run(runId)}/weights/`,
  results: (runId: RunId) => `${run(runId)}/results/`,
  all: (runId: RunId) => `${run(runId)}/`,
  schedules: 'schedules/',
  schedule: (name: string, n: number) => `schedules/${name}/records/${n}.json`,
  firing: (name: string, n: number) => `schedules/${name}/firings/${n}.json`,
  scheduleBlob: (name: string, digest: Digest) => `schedules/${name}/blobs/${digest}`,
  model: (digest: Digest, file: string) => `models/${digest}/${file}`,
  dataset: (digest: Digest, file: string) => `datasets/${digest}/${file}`,
  /** What the janitor has decided about models and datasets. */
  inputs: (n: number) => `janitor/${n}.json`,
} as const;

/** Where objects lie that may be too large to be written in one piece. */
export const largeFolders = ['runs/', 'models/', 'datasets/'] as const;
