/**
 * Feeds every parser of data from disks and networks with mutated real bytes. It must accept them or refuse them with
 * one of petrel's errors, without a crash or a hang. Changed bytes that a digest covers must be refused.
 * PETREL_FUZZ_RUNS sets the number of mutations for each (200), PETREL_FUZZ_SEED the seed (1).
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadRecipe } from '../api/recipes/recipe-file.ts';
import { PetrelError } from '../core/errors.ts';
import type { Store } from '../core/ports/store.ts';
import { keys } from '../core/records/keys.ts';
import {
  batchDecision,
  checkpointManifest,
  evalRecord,
  resultRecord,
  revisionRecord,
  runRecord,
  statusEntry,
  termRecord,
  updateDecision,
} from '../core/records/schema.ts';
import { claimReply, claimRequest, jobEvent, jobMessage, liveNote, presence } from '../core/wire/messages.ts';
import { packageRoot } from '../infra/home.ts';
import { readConfig, readEndpoints, readStackFile } from '../infra/stack/state.ts';
import { lockHolder } from '../infra/stack/lock.ts';
import { readDatasetFiles } from '../log/inputs/datasets.ts';
import { sha256 } from '../log/objects/digest.ts';
import { openFolderStore } from '../infra/store/folder.ts';
import { readModelManifest } from '../log/inputs/model-facts.ts';
import { knownStores } from '../infra/store/places.ts';
import { readRecord } from '../log/objects/records.ts';
import { parseLogLine } from '../infra/telemetry/run-log-lines.ts';
import { decodeBatch } from '../models/batch-tensors.ts';
import { readDecoderSpec } from '../native/model/config.ts';
import { decodeDataset, rowsFile, tokensFile } from '../models/dataset-fact.ts';
import { readParquet } from '../models/dataset/parquet/read.ts';
import { rawRows } from '../models/dataset/raw-rows.ts';
import { decodeSafetensors, openSafetensors } from '../models/safetensors.ts';
import { ChatTemplate } from '../models/template.ts';
import { openTokenizer } from '../models/tokenizer.ts';
import { decodeTrajectories } from '../models/trajectories.ts';
import { readConfigJson } from '../models/folder.ts';
import { parseReply } from '../rewards/host/protocol.ts';
import { buildRun } from './run-builder.ts';
import type { BuiltRun } from './run-builder.ts';

const runs = Number(process.env['PETREL_FUZZ_RUNS'] ?? 200);
const seed = Number(process.env['PETREL_FUZZ_SEED'] ?? 1);

const folder = mkdtempSync(join(tmpdir(), 'petrel-fuzz-'));
let store: Store;
let run: BuiltRun;
afterAll(() => rmSync(folder, { recursive: true }));
beforeAll(async () => {
  store = await openFolderStore(join(folder, 'store'));
  run = await buildRun(store, { done: 2, checkpoints: [2], evaluations: [2] });
});

/** Bytes with some flipped bits, cuts, repeated parts, and sizes that exceed any memory. */
const mutation = fc.record({
  flips: fc.array(fc.tuple(fc.double({ min: 0, max: 0.9999, noNaN: true }), fc.integer({ min: 1, max: 255 })), {
    maxLength: 4,
  }),
  cut: fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { freq: 4 }),
  insert: fc.option(
    fc.tuple(
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.constantFrom('9007199254740993', '-1', '1e999', 'null', '{}', '[[[[', '"', '\u0000', '__proto__', '\ud800'),
    ),
    { freq: 3 },
  ),
});
type Mutation = typeof mutation extends fc.Arbitrary<infer T> ? T : never;

function mutate(bytes: Uint8Array, { flips, cut, insert }: Mutation): Uint8Array {
  let out = Buffer.from(bytes);
  for (const [at, bits] of flips) if (out.length > 0) out[Math.floor(at * out.length)]! ^= bits;
  if (insert !== null)
    out = Buffer.concat([
      out.subarray(0, Math.floor(insert[0] * out.length)),
      Buffer.from(insert[1]),
      out.subarray(Math.floor(insert[0] * out.length)),
    ]);
  return cut === null ? out : out.subarray(0, Math.floor(cut * out.length));
}

/** `accepts` gets the bytes and returns whether it accepted them. It may throw only petrel's own errors. */
function fuzz(
  name: string,
  sample: () => Uint8Array | Promise<Uint8Array>,
  parse: (bytes: Uint8Array) => unknown,
  options: { readonly exact?: boolean; readonly runs?: number } = {},
): void {
  it(`${name}, mutated (seed ${seed})`, async () => {
    const original = await sample();
    expect(original.length).toBeGreaterThan(0);
    await parse(original);
    await fc.assert(
      fc.asyncProperty(mutation, async (how) => {
        const bytes = mutate(original, how);
        try {
          await parse(bytes);
        } catch (error) {
          if (error instanceof PetrelError) return;
          throw error;
        }
        if (options.exact === true) expect(sha256(bytes)).toBe(sha256(original));
      }),
      { seed, numRuns: options.runs ?? runs },
    );
  });
}

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
const json = (bytes: Uint8Array): unknown => {
  try {
    return JSON.parse(text(bytes));
  } catch {
    return undefined;
  }
};
/** A parser of a file with a fixed path. */
const viaFile = (name: string, parse: (path: string) => unknown) => async (bytes: Uint8Array) => {
  const path = join(folder, name);
  mkdirSync(join(path, '..'), { recursive: true });
  writeFileSync(path, bytes);
  return parse(path);
};
const drain = async (rows: AsyncIterable<unknown>) => {
  for await (const row of rows) void row;
};

describe('records', () => {
  const record = (name: string, keyOf: () => string | Promise<string>, schema: Parameters<typeof readRecord>[2]) =>
    fuzz(
      name,
      async () => (await store.get(await keyOf())) ?? new Uint8Array(),
      async (bytes) => {
        await store.put('fuzz/record', bytes);
        const { record: found } = (await readRecord(store, 'fuzz/record', schema)) ?? {};
        // An accepted record must equal the original: only its checksum's spelling and white space may differ.
        const original = await readRecord(store, await keyOf(), schema);
        if ('check' in Object(json(bytes))) expect(found).toEqual(original?.record);
      },
    );
  record('run', () => keys.run(run.runId), runRecord);
  record('revision', () => keys.revision(run.runId, 1), revisionRecord);
  record('term', () => keys.term(run.runId, 1), termRecord);
  record('batch', () => keys.batch(run.runId, 1, 2), batchDecision);
  record('update', () => keys.update(run.runId, 1, 2), updateDecision);
  record('validation', () => keys.evaluation(run.runId, 1, 2), evalRecord);
  record('status', () => keys.status(run.runId, 1), statusEntry);
  record('checkpoint manifest', async () => (await run.log.checkpoints.names())[0]?.key ?? '', checkpointManifest);
  record('result', async () => (await store.list(`runs/${run.runId}/results/`))[0] ?? '', resultRecord);
});

describe('tensors', () => {
  const blob = async (digest: string | undefined) =>
    (await store.get(keys.blob(run.runId, digest ?? ''))) ?? new Uint8Array();
  const batch = async () => blob((await run.log.iteration(1)).batch.record.tensors);
  const trajectories = async () => {
    for (const key of await store.list(`runs/${run.runId}/results/rollout`))
      return blob(String((await readRecord(store, key, resultRecord))?.record.output['trajectories']));
    return new Uint8Array();
  };
  const dataset = async (name: string) =>
    (await store.get(keys.dataset((await run.log.revision()).inputs.train, name))) ?? new Uint8Array();
  fuzz('safetensors', batch, (bytes) => decodeSafetensors(bytes));
  fuzz(
    'a safetensors file',
    batch,
    viaFile('model/model.safetensors', async (path) => (await openSafetensors(join(path, '..'))).close()),
  );
  fuzz('batch tensors', batch, (bytes) => decodeBatch(bytes, 'fuzz'));
  fuzz('trajectories', trajectories, (bytes) => decodeTrajectories(bytes, 'fuzz'));
  fuzz(
    'tokens of a dataset',
    () => dataset(tokensFile),
    async (bytes) => decodeDataset(bytes, await dataset(rowsFile), 'fuzz'),
  );
  fuzz(
    'rows of a dataset',
    () => dataset(rowsFile),
    async (bytes) => decodeDataset(await dataset(tokensFile), bytes, 'fuzz'),
  );
  fuzz(
    'a dataset by its digest',
    () => dataset(rowsFile),
    async (bytes) => {
      const digest = (await run.log.revision()).inputs.train;
      const good = await dataset(rowsFile);
      await store.put(keys.dataset(digest, rowsFile), bytes);
      await readDatasetFiles(store, digest, [tokensFile, rowsFile]).finally(() =>
        store.put(keys.dataset(digest, rowsFile), good),
      );
    },
    { exact: true },
  );
});

describe('models', () => {
  const example = join(packageRoot(), 'examples/01-arithmetic-grpo/base');
  const file = (name: string) => () => readFileSync(join(example, name));
  fuzz(
    'config.json',
    file('config.json'),
    viaFile('config/config.json', async (path) => readDecoderSpec(await readConfigJson(join(path, '..')))),
  );
  fuzz(
    'tokenizer.json',
    file('tokenizer.json'),
    viaFile('tokenizer/tokenizer.json', async (path) => {
      writeFileSync(join(path, '../tokenizer_config.json'), readFileSync(join(example, 'tokenizer_config.json')));
      writeFileSync(join(path, '../config.json'), readFileSync(join(example, 'config.json')));
      return openTokenizer(join(path, '..'));
    }),
  );
  fuzz(
    'chat template',
    () =>
      Buffer.from(
        "{% for m in messages %}{{ '<' + m.role + '>' + (m['content'] | trim) }}{% if loop.last %}.{% endif %}{% endfor %}",
      ),
    (bytes) => new ChatTemplate(text(bytes)),
  );
  fuzz(
    'the list of files of a model',
    async () =>
      (await store.get(keys.model((await run.log.revision()).inputs.model, 'manifest.json'))) ?? new Uint8Array(),
    async (bytes) => {
      const digest = (await run.log.revision()).inputs.model;
      const key = keys.model(digest, 'manifest.json');
      const good = (await store.get(key)) ?? new Uint8Array();
      await store.put(key, bytes);
      const files = await readModelManifest(store, digest).finally(() => store.put(key, good));
      expect(files).toEqual(await readModelManifest(store, digest));
    },
  );
});

describe('rows and recipes', () => {
  const root = packageRoot();
  fuzz(
    'rows of JSONL',
    () =>
      Buffer.from(
        readFileSync(join(root, 'examples/01-arithmetic-grpo/validation.jsonl'), 'utf8')
          .split('\n')
          .slice(0, 20)
          .join('\n'),
      ),
    viaFile('rows.jsonl', async (path) => drain(await rawRows(path))),
  );
  for (const codec of ['snappy', 'gzip', 'zstd']) {
    fuzz(
      `rows of Parquet with ${codec}`,
      () => readFileSync(join(root, `models/dataset/fixtures/verl-${codec}.parquet`)),
      viaFile(`rows-${codec}.parquet`, (path) => drain(readParquet(path))),
      { runs: Math.ceil(runs / 4) },
    );
  }
  fuzz(
    'recipe',
    () => readFileSync(join(root, 'examples/01-arithmetic-grpo/recipe.yaml')),
    viaFile('recipe.yaml', (path) => loadRecipe(path, [], folder)),
  );
});

describe('messages and files of the stack', () => {
  const sample = (value: unknown) => () => Buffer.from(JSON.stringify(value));
  const at = { term: 1, iteration: 2 };
  fuzz(
    'job message',
    sample({ v: 1, jobId: 'rollout-1', stage: 'rollout', runId: 'r', at, store: 'file:///s', input: { a: 1 } }),
    (bytes) => jobMessage.safeParse(json(bytes)),
  );
  fuzz('claim', sample({ v: 1, jobId: 'j', worker: 'w', incarnation: 'i' }), (bytes) =>
    claimRequest.safeParse(json(bytes)),
  );
  fuzz('answer to a claim', sample({ v: 1, answer: 'go', alone: false, secret: '5e' }), (bytes) =>
    claimReply.safeParse(json(bytes)),
  );
  fuzz(
    'event, note, presence',
    sample({ v: 1, type: 'progress', worker: 'w', done: 1, total: 2, note: 'n' }),
    (bytes) => [jobEvent, liveNote, presence].map((schema) => schema.safeParse(json(bytes))),
  );
  fuzz('log line', sample({ v: 1, at: '2026-01-01T00:00:00.000Z', level: 'info', source: 's', text: 't' }), (bytes) =>
    parseLogLine(text(bytes)),
  );
  fuzz(
    'reply of a scorer',
    () => Buffer.from('mark {"type":"result","id":1,"score":0.5,"columns":{"acc":1}}'),
    (bytes) => parseReply(text(bytes), 'mark '),
  );
  const stack = {
    pid: 1,
    startTime: '1',
    startedAt: 'now',
    build: 'b',
    phase: 'running',
    temporal: { address: 'a:1', payloadKey: 'k' },
    nats: { url: 'n', credential: { key: 'k', jwt: 'j' }, system: { key: 's', jwt: 't' } },
    pools: [],
    children: [],
  };
  fuzz('stack.json', sample(stack), viaFile('home/stack/stack.json', readStackFile));
  fuzz(
    'config.json of the stack',
    sample({ pools: [{ name: 'local', count: 1, roles: ['trainer'] }] }),
    viaFile('home/stack/config.json', () => readConfig(join(folder, 'home'))),
  );
  fuzz(
    'endpoints.json',
    sample({ temporalPort: 1, natsPort: 3, payloadKey: 'p' }),
    viaFile('home/stack/endpoints.json', () => readEndpoints(join(folder, 'home'))),
  );
  fuzz(
    'a lock',
    sample({ pid: 1, startTime: '1', released: false }),
    viaFile('lock/1', (path) => lockHolder(join(path, '..'))),
  );
  fuzz(
    'stores.json',
    sample({ format: 1, stores: ['file:///a'] }),
    viaFile('home/stores.json', () => knownStores(join(folder, 'home'))),
  );
});
