import { describe, expect, it } from 'vitest';
import { keys } from './keys.ts';
import { isInputFolder, isOwnFolder, isOwnKey, topFolders } from './own-keys.ts';

const digest = 'a'.repeat(64);
const runId = 'learn-20260102-030405-0a1b';
const job = `rollout-${'b'.repeat(32)}`;

const every: Readonly<Record<string, string>> = {
  run: keys.run(runId),
  tombstone: keys.tombstone(runId),
  revision: keys.revision(runId, 1),
  term: keys.term(runId, 12),
  batch: keys.batch(runId, 1, 30),
  update: keys.update(runId, 1, 30),
  evaluation: keys.evaluation(runId, 1, 0),
  result: keys.result(runId, job),
  pin: keys.pin(runId, runId),
  checkpoint: keys.checkpoint(runId, 4, digest),
  weights: keys.weights(runId, digest),
  blob: keys.blob(runId, digest),
  retention: keys.retention(runId, 3),
  status: keys.status(runId, 3),
  metricChunk: keys.metricChunk(runId, { first: 101, last: 200 }, 1),
  log: keys.log(runId, '000001-control.jsonl'),
  schedule: keys.schedule('nightly', 1),
  firing: keys.firing('nightly', 1),
  scheduleBlob: keys.scheduleBlob('nightly', digest),
  model: keys.model(digest, 'config.json'),
  dataset: keys.dataset(digest, 'rows.jsonl'),
  inputs: keys.inputs(7),
  claimKey: keys.claimKey,
  build: keys.build(digest),
  buildFile: keys.buildFile(digest),
  fleet: keys.fleet('laptop.local-3f9a2c', 2),
  launch: keys.launch('laptop.local-3f9a2c', 'samplers', 12),
  launchAnswer: keys.launchAnswer('laptop.local-3f9a2c', 'samplers', 12),
  instanceJoined: keys.instanceJoined('laptop.local-3f9a2c', 'i-0f3a8c2e9d5b71640'),
  instanceReady: keys.instanceReady('laptop.local-3f9a2c', 'i-0f3a8c2e9d5b71640'),
  instanceLeaving: keys.instanceLeaving('laptop.local-3f9a2c', 'i-0f3a8c2e9d5b71640'),
  instanceEnded: keys.instanceEnded('laptop.local-3f9a2c', 'i-0f3a8c2e9d5b71640'),
  drivenRun: keys.drivenRun('laptop.local-3f9a2c', runId, '0123456789abcdef'),
  stackClaim: keys.stackClaim('laptop.local-3f9a2c', 1),
  usage: keys.usage('laptop.local-3f9a2c', '2027-01-31', '0123456789ab-7'),
};

/** Entries of `keys` that are folders. */
const folders = new Set([
  'modelFolder',
  'datasetFolder',
  ...[
    'runs',
    'revisions',
    'terms',
    'positions',
    'pins',
    'checkpoints',
    'statuses',
    'logs',
    'blobs',
    'allWeights',
    'metricChunks',
  ],
  ...[
    'results',
    'all',
    'schedules',
    'retentions',
    'allInputs',
    'launches',
    'launchedPools',
    'fleets',
    'usages',
    'usageDays',
    'drivenRuns',
    'drivenRunNotes',
  ],
]);

describe('the keys of a store', () => {
  it('are all here', () => {
    expect(Object.keys(keys).filter((name) => !folders.has(name) && every[name] === undefined)).toEqual([]);
  });

  it.each(Object.entries(every))('are recognised as petrel’s: %s', (_, key) => {
    expect(isOwnKey(key)).toBe(true);
    expect(isOwnFolder(key.slice(0, key.lastIndexOf('/') + 1))).toBe(true);
    expect(topFolders.some((folder) => key.startsWith(folder))).toBe(true);
  });

  it.each([
    'models/llama-3-8b/config.json',
    `models/${digest}/deeper/config.json`,
    'datasets/gsm8k/train.jsonl',
    `runs/${runId}/notes.txt`,
    `runs/${runId}/blobs/notes.txt`,
    `runs/${runId}/terms/1/notes.json`,
    `link/.ssh/id_rsa`,
    `x/runs/${runId}/run.json`,
    `runs/${runId}/run.json/x`,
  ])('do not match a user’s file: %s', (key) => expect(isOwnKey(key)).toBe(false));

  it('include inputs only with a digest', () => {
    expect(isInputFolder(`models/${digest}/`)).toBe(true);
    for (const folder of ['models/llama-3-8b/', `models/${digest}`, `x/models/${digest}/`, `models/${digest}/x/`])
      expect(isInputFolder(folder)).toBe(false);
  });
});
