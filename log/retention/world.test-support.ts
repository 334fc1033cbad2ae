/**
 * A run in a store, changed step by step by its workers and its user, and the invariants that hold after every step.
 */
import { digestOf } from '../objects/digest.ts';
import { putBlob } from '../objects/blobs.ts';
import { bestCheckpoint } from '../run/best-checkpoint.ts';
import { encodeRecord } from '../objects/records.ts';
import { RunLog } from '../run/run-log.ts';
import { openNextTerm } from '../run/terms.ts';
import { appendStatus } from '../run/status.ts';
import { MemoryStore } from '../../tests/memory-store.ts';
import { actorOf, shardsOf } from '../../core/records/components.ts';
import { exampleLoss, exampleOptimizer, exampleProfile } from '../../core/records/examples.test-support.ts';
import { keys } from '../../core/records/keys.ts';
import { recordFormat } from '../../core/records/schema.ts';
import type { RunState } from '../../core/run-states.ts';
import { parseRecipe } from '../../core/recipe/index.ts';
import { livePins, pinPosition, readRetention } from '../run/retention-log.ts';
import { passOver } from './pass.ts';
import type { RunPass } from './pass.ts';
import { endSweep } from './orphans.ts';

export const graceMs = 60_000;
const runId = 'toy-20260102-030405-abcd';
const writer = { process: 'test', at: '' };
const counters = { cursor: 0, optimizerSteps: {}, badSteps: 0, controllers: {} };
const stateOf = (stateDigest: string) => ({ stateDigest, weightsDigest: digestOf(['weights', stateDigest]) });
/** Every second update has a trainer that computes in bf16. */
const publicationsOf = (state: string, k: number) =>
  k % 2 === 0 ? { F32: stateOf(state).weightsDigest } : { BF16: digestOf(['rounded', state]) };
/** Any number that depends on the state; some states are equally good. */
const accuracyOf = (state: string) => Number.parseInt(digestOf(['accuracy', state]).slice(0, 1), 16) / 15;
const bytes = (text: string) => new TextEncoder().encode(text);
/** The writer died. */
class Crash extends Error {}

export class World {
  readonly store = new MemoryStore();
  readonly log = new RunLog(this.store, runId);
  #now = Date.parse('2026-01-02T03:04:05Z');
  #term = 1;
  #position = 0;
  #pending = false;
  #state = '';
  #parent = '';
  /** Makes repeated objects distinct. */
  #nonce = 0;
  readonly #unpin: (() => Promise<void>)[] = [];
  /** The best checkpoint at the last look. */
  #best: { readonly position: number; readonly state: string } | undefined;

  now = (): Date => new Date(this.#now);

  /** `best`: the best checkpoint is kept too. */
  async begin(keep: number | null, batches: 'since_oldest_checkpoint' | 'all', best = false): Promise<void> {
    const recipe = parseRecipe({
      name: 'toy',
      model: { path: './m' },
      data: { train_files: 't.jsonl' },
      trainer: {
        total_training_steps: 100,
        test_freq: 1,
        max_actor_ckpt_to_keep: keep,
        keep_batches: batches,
        best_metric: best ? 'accuracy' : null,
      },
    });
    const rows = digestOf('rows');
    const inputs = { model: digestOf('model'), train: rows, trainRows: 4, validation: rows, validationRows: 4 };
    await this.#create(keys.run(runId), { format: recordFormat, runId, name: 'toy', kind: 'rl', createdAt: '' });
    await this.#create(keys.revision(runId, 1), {
      format: recordFormat,
      runId,
      revision: 1,
      fromPosition: 0,
      recipe,
      inputs,
      createdAt: '',
    });
    this.#state = digestOf('base');
    await this.#openTerm();
    await this.becomes('running');
  }

  /** Undisturbed iterations, each with its checkpoint. */
  async iterate(count: number): Promise<void> {
    for (let k = 1; k <= count; k++) {
      await this.commitBatch('batch');
      await this.commitUpdate(false);
      await this.saveCheckpoint(3);
    }
  }

  /** Rollout, reward and advantage. `until`: the point at which the worker dies. */
  async commitBatch(until: 'blob' | 'result' | 'batch'): Promise<void> {
    if (this.#pending) return;
    const k = this.#position + 1;
    const name = `${this.#term === 1 || until === 'batch' ? '' : this.#nonce++} ${k} ${this.#state}`;
    const trajectories = await putBlob(this.store, runId, bytes(`trajectories ${name}`));
    if (until === 'blob') return;
    const jobs = [
      await this.#result('rollout', name, { trajectories }),
      await this.#result('reward', name, { scores: await putBlob(this.store, runId, bytes(`scores ${name}`)) }),
    ];
    if (until === 'result') return;
    await this.#create(keys.batch(runId, this.#term, k), {
      ...{
        format: recordFormat,
        runId,
        term: this.#term,
        iteration: k,
        parent: this.#parent,
        parentState: this.#state,
        revision: 1,
      },
      tensors: await putBlob(this.store, runId, bytes(`tensors ${name}`)),
      ...{
        oldLogProbs: 'stored',
        results: jobs,
        draws: [],
        before: counters,
        after: counters,
        metrics: {},
        timings: {},
        decision: 'train',
        writer,
      },
      components: {
        actor: {
          profile: exampleProfile.id,
          learningRates: [],
          loss: exampleLoss,
          optimizer: exampleOptimizer,
        },
      },
    });
    this.#pending = true;
  }

  /** A skipped update leaves the state unchanged. */
  async commitUpdate(skipped: boolean): Promise<void> {
    if (!this.#pending) return;
    const k = this.#position + 1;
    const state = skipped ? this.#state : digestOf(['state', k, this.#state]);
    const record = {
      ...{
        format: recordFormat,
        runId,
        term: this.#term,
        iteration: k,
        batch: digestOf(k),
        parentState: this.#state,
        outcome: skipped ? 'skipped' : 'applied',
      },
      ...{
        stateDigest: state,
        components: { actor: { ...stateOf(state), steps: [], publications: publicationsOf(state, k) } },
        after: counters,
        metrics: {},
        timings: {},
        writer,
      },
    };
    await this.#create(keys.update(runId, this.#term, k), record);
    this.#parent = digestOf(record);
    [this.#position, this.#state, this.#pending] = [k, state, false];
  }

  /** `until`: the number of shards that are written before the trainer dies; 3 means all of them and the manifest. */
  async saveCheckpoint(until: number): Promise<void> {
    if (this.#position === 0) return;
    const k = this.#position;
    const shards = [];
    for (const part of ['weights', 'm', 'v'].slice(0, until)) {
      const content = bytes(`${part} ${k} ${this.#state}`);
      shards.push({ blob: await putBlob(this.store, runId, content), bytes: content.byteLength, tensors: [] });
    }
    if (until < 3) return;
    await this.#create(keys.checkpoint(runId, k, this.#state), {
      ...{
        format: recordFormat,
        runId,
        term: this.#term,
        iteration: k,
        stateDigest: this.#state,
        components: { actor: { ...stateOf(this.#state), steps: 0, parts: [], shards, parameters: [] } },
      },
    });
  }

  /**
   * Flips a bit of the newest checkpoint before it was read. A disk that fails later is found only by `ckpt verify`.
   */
  async damageCheckpoint(): Promise<void> {
    const [newest] = await this.log.checkpoints.all();
    if (newest === undefined || (await readRetention(this.log)).verified.includes(newest.key)) return;
    const key = keys.blob(runId, shardsOf(newest.record)[1]?.blob ?? '');
    if (this.store.objects.has(key)) this.store.objects.set(key, bytes('damaged'));
  }

  async publishWeights(): Promise<void> {
    const published = (await this.log.head())?.publication;
    if (published === undefined) return;
    const { format, digest: weightsDigest } = published;
    const content = bytes(`weights object ${weightsDigest}`);
    const shards = [{ blob: await putBlob(this.store, runId, content), bytes: content.byteLength, tensors: [] }];
    await this.#create(keys.weights(runId, weightsDigest), {
      format: recordFormat,
      component: 'actor',
      weightsDigest,
      dtypes: { weights: format },
      shards,
    });
  }

  /** The same weights give the same jobs. */
  async evaluate(): Promise<void> {
    const weightsDigest = digestOf(['weights', this.#state]);
    const trajectories = await this.#once('rollout', `validate ${weightsDigest}`, 'trajectories');
    const scores = await this.#once('reward', `validate ${weightsDigest}`, 'scores');
    await this.#create(keys.evaluation(runId, this.#term, this.#position), {
      ...{
        format: recordFormat,
        runId,
        term: this.#term,
        iteration: this.#position,
        weightsDigest,
        questions: 1,
        failed: 0,
        accuracy: accuracyOf(this.#state),
        metrics: {},
        timings: {},
        results: [trajectories, scores],
        writer,
      },
    });
  }

  /** An export or a fork starts. */
  async pin(back: number): Promise<void> {
    const position = Math.max(0, this.#position - back);
    const unpin = await pinPosition(this.log, { position, why: 'a test', forMs: 10 * graceMs }, this.now).catch(
      refused,
    );
    if (unpin !== undefined) this.#unpin.push(unpin);
  }

  async unpin(): Promise<void> {
    await this.#unpin.shift()?.();
  }

  /** `resume --from`. */
  async redoFrom(back: number): Promise<void> {
    const position = Math.max(0, this.#position - back);
    const opened = await openNextTerm(this.log, {
      after: this.#term,
      position,
      skipDraws: false,
      owner: 'test',
      reason: 'a redo',
      writer,
    }).catch(refused);
    if (opened === undefined) return;
    await this.becomes('running');
    const head = await this.log.head();
    [this.#term, this.#position, this.#state, this.#parent, this.#pending] = [
      opened.record.term,
      position,
      opened.record.startState,
      head?.parent ?? '',
      false,
    ];
  }

  async becomes(state: RunState): Promise<void> {
    if (state === 'running') await endSweep(this.log, this.now());
    await appendStatus(this.log, { state }, this.now());
  }

  wait(ms: number): void {
    this.#now += ms;
  }

  /** `dieAfter`: number of changes to the store after which the janitor dies. */
  async janitor(dieAfter = Number.POSITIVE_INFINITY): Promise<RunPass> {
    let left = dieAfter;
    this.store.beforeChange = () => {
      if (left-- <= 0) throw new Crash();
    };
    try {
      return await passOver(new RunLog(this.store, runId), { now: this.now(), graceMs });
    } finally {
      this.store.beforeChange = () => {};
    }
  }

  /** Two control processes, each with its janitor. */
  async twoJanitors(): Promise<void> {
    await Promise.all([
      passOver(new RunLog(this.store, runId), { now: this.now(), graceMs }),
      passOver(new RunLog(this.store, runId), { now: this.now(), graceMs }),
    ]);
  }

  /** The objects that may still be needed and are missing. */
  async lost(): Promise<string[]> {
    const log = new RunLog(this.store, runId);
    const entry = await readRetention(log);
    const whole = (await log.checkpoints.all()).filter(({ record }) =>
      shardsOf(record).every(
        ({ blob }) =>
          digestOf([...(this.store.objects.get(keys.blob(runId, blob)) ?? [])]) !== digestOf([...bytes('damaged')]),
      ),
    );
    const missing: string[] = [];
    const need = (key: string, why: string) => void (this.store.objects.has(key) || missing.push(`${why}: ${key}`));
    for (const { record } of await log.checkpoints.all())
      for (const { blob } of shardsOf(record)) need(keys.blob(runId, blob), `shard of checkpoint ${record.iteration}`);
    const from = (position: number) => whole.find(({ record }) => record.iteration <= position)?.record.iteration ?? 0;
    const pinned = livePins(entry, this.now()).map((pin) => pin.position);
    // A pin is void when a redo has abandoned its position.
    for (const position of [this.#position, entry.floor, ...pinned.filter((one) => one <= this.#position)]) {
      if (from(position) < entry.floor) missing.push(`no way to position ${position}: the floor is ${entry.floor}`);
      for (let k = from(position) + 1; k <= position; k++)
        need(keys.blob(runId, (await log.iteration(k)).batch.record.tensors), `batch ${k} on the way to ${position}`);
    }
    for (const [key, why] of await this.#namedAbove(log, entry.floor)) need(key, why);
    return [...missing, ...(await this.#worse(log))];
  }

  /** The best checkpoint, when it is gone although no other one is as good and its position is still in the log. */
  async #worse(log: RunLog): Promise<string[]> {
    const recipe = parseRecipe((await log.revision()).recipe);
    if (recipe.trainer.best_metric === null) return [];
    const before = this.#best;
    this.#best = undefined;
    for (const { record } of await log.checkpoints.all()) {
      const [position, state] = [record.iteration, record.stateDigest];
      const isValidated = (await log.evaluations.all()).some(({ iteration }) => iteration === position);
      if (isValidated && !(this.#best !== undefined && accuracyOf(this.#best.state) > accuracyOf(state)))
        this.#best = { position, state };
    }
    if (before === undefined || before.position > this.#position) return [];
    if ((await log.at(before.position)).stateDigest !== before.state) return [];
    if (this.#best !== undefined && accuracyOf(this.#best.state) >= accuracyOf(before.state)) return [];
    return [`the best checkpoint: ${keys.checkpoint(runId, before.position, before.state)}`];
  }

  /** Blobs and manifests that can no longer be needed. */
  async superfluous(): Promise<string[]> {
    const log = new RunLog(this.store, runId);
    const { floor, marked } = await readRetention(log);
    const allowed = new Set((await this.#namedAbove(log, floor)).map(([key]) => key));
    const best = await bestCheckpoint(log);
    const checkpoints = (await log.checkpoints.all()).filter(
      ({ key, record }) => record.iteration >= floor || key === best?.key,
    );
    for (const { key, record } of checkpoints)
      for (const one of [key, ...shardsOf(record).map(({ blob }) => keys.blob(runId, blob))]) allowed.add(one);
    const abandoned = (key: string) =>
      key.startsWith(keys.checkpoints(runId)) &&
      Number.parseInt(key.slice(keys.checkpoints(runId).length), 10) >= floor;
    const shardsOfAbandoned = [...this.store.objects]
      .filter(([key]) => abandoned(key))
      .flatMap(([, content]) =>
        [...new TextDecoder().decode(content).matchAll(/[0-9a-f]{64}/g)].map(([digest]) => keys.blob(runId, digest)),
      );
    for (const key of shardsOfAbandoned) allowed.add(key);
    const removable = [...this.store.objects.keys()].filter((key) =>
      [keys.blobs(runId), keys.checkpoints(runId), keys.allWeights(runId)].some((prefix) => key.startsWith(prefix)),
    );
    return [...removable.filter((key) => !allowed.has(key) && !abandoned(key)), ...marked];
  }

  /**
   * The blobs that records above the floor name: batches of every term, validations, work in progress, and the weights
   * of the head.
   */
  async #namedAbove(log: RunLog, floor: number): Promise<[string, string][]> {
    const named: [string, string][] = [];
    const inBatches = new Set<string>();
    const results = async (jobs: readonly string[], why: string) => {
      for (const job of jobs) {
        const { output } = JSON.parse(new TextDecoder().decode(await this.store.get(keys.result(runId, job)))) as {
          output: Record<string, string>;
        };
        for (const digest of Object.values(output)) named.push([keys.blob(runId, digest), why]);
      }
    };
    for (const [key, content] of [...this.store.objects]) {
      const match = /terms\/\d+\/(\d+)\/(batch|eval)\.json$/.exec(key);
      if (match === null) continue;
      const record = JSON.parse(new TextDecoder().decode(content)) as { results?: string[]; tensors?: string };
      if (record.results === undefined) continue; // a seal
      for (const job of record.results) inBatches.add(job);
      if (Number(match[1]) <= floor && !(floor === 0 && match[1] === '0')) continue;
      if (record.tensors !== undefined) named.push([keys.blob(runId, record.tensors), `tensors of ${key}`]);
      await results(record.results, `results of ${key}`);
    }
    await results((await log.evaluations.all()).at(-1)?.results ?? [], 'the newest validation');
    const flying = [...this.store.objects.keys()]
      .filter((key) => key.startsWith(keys.results(runId)))
      .map((key) => key.slice(keys.results(runId).length, -5));
    await results(
      flying.filter((job) => !inBatches.has(job)),
      'in flight',
    );
    const head = await log.head();
    for (const weights of new Set([
      head?.publication.digest,
      head && actorOf(head.termRecord.components).weightsDigest,
      (await log.at(Math.max(0, this.#position - 1)).catch(() => undefined))?.publication.digest,
    ])) {
      if (weights === undefined) continue;
      const manifest = this.store.objects.get(keys.weights(runId, weights));
      if (manifest === undefined) continue;
      named.push(
        [keys.weights(runId, weights), 'weights'],
        ...[...new TextDecoder().decode(manifest).matchAll(/"blob":"([0-9a-f]{64})"/g)].map(
          ([, digest]): [string, string] => [keys.blob(runId, digest ?? ''), 'weights of the head'],
        ),
      );
    }
    return named;
  }

  async #openTerm(): Promise<void> {
    const record = {
      ...{
        format: recordFormat,
        runId,
        term: 1,
        startState: this.#state,
        components: { actor: { ...stateOf(this.#state), profile: exampleProfile } },
      },
      ...{
        owner: 'test',
        reason: 'test',
        skippedDraws: [],
        writer,
        revision: 1,
      },
    };
    await this.#create(keys.term(runId, 1), record);
    this.#parent = digestOf(record);
  }

  async #once(stage: string, input: string, field: string): Promise<string> {
    const job = `${stage}-${digestOf(input).slice(0, 32)}`;
    if (this.store.objects.has(keys.result(runId, job))) return job;
    return this.#result(stage, input, { [field]: await putBlob(this.store, runId, bytes(`${field} ${input}`)) });
  }

  async #result(stage: string, input: string, output: Record<string, string>): Promise<string> {
    const jobId = `${stage}-${digestOf(input).slice(0, 32)}`;
    await this.#create(keys.result(runId, jobId), { format: recordFormat, jobId, stage, output, timings: {}, writer });
    return jobId;
  }

  #create(key: string, record: object): Promise<'created' | 'exists'> {
    return this.store.create(key, encodeRecord(record));
  }
}

/** undefined when an earlier decision has raised the floor above the position. */
function refused(error: unknown): undefined {
  if (error instanceof Error && 'code' in error && error.code === 'RemovedByRetention') return undefined;
  throw error;
}
