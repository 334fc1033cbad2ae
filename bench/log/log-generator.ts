/**
 * Generates the records of a run of any length: positions, terms, checkpoints, validations, status and retention
 * entries. Records have links and digests like real ones; blobs and job results are left out. 10,000 positions take
 * about two seconds.
 */
import { makeRunId } from '../../core/ids.ts';
import { parseRecipe } from '../../core/recipe/index.ts';
import { keys } from '../../core/records/keys.ts';
import { recordFormat, toStoredRetention } from '../../core/records/schema.ts';
import type {
  BatchRecord,
  BatchSeal,
  CheckpointManifest,
  Counters,
  EvalRecord,
  RetentionEntry,
  RevisionRecord,
  StatusEntry,
  TermRecord,
  UpdateRecord,
} from '../../core/records/schema.ts';
import type { RunState } from '../../core/run-states.ts';
import { digestOf, sha256 } from '../../log/objects/digest.ts';
import { encodeRecord } from '../../log/objects/records.ts';

export interface LogSize {
  readonly positions: number;
  readonly terms: number;
  /** Positions between checkpoints. */
  readonly checkpointEvery: number;
  /** Positions between validations. */
  readonly validationEvery: number;
  readonly state: RunState;
  /** Terms contain their lineage, as new ones do. False: they name only their parents, as 5ad3543 wrote them. */
  readonly lineage?: boolean;
  /** Iterations that each new term abandons; default: 2. */
  readonly abandoned?: number;
  /** Checkpoints that retention keeps; default: all. */
  readonly keep?: number;
}

export interface GeneratedLog {
  readonly runId: string;
  readonly objects: Map<string, Uint8Array>;
}

const at = '2026-01-02T03:04:05.000Z';
const writer = { process: 'generator', at };
const owner = 'generator';
/** Positions between entries of the janitor. */
const retentionEvery = 50;
/** Iterations that each new term abandons. */
const givenUp = 2;

/** All objects of the run, by key. The first half of the positions is spread over all terms but the last. */
export function generateLog(size: LogSize): GeneratedLog {
  const log = new LogWriter(size);
  log.begin();
  const half = Math.floor(size.positions / 2);
  for (let term = 1; term <= size.terms; term++) {
    const last = term === size.terms;
    log.openTerm(term, Math.max(0, log.position - (term === 1 ? 0 : (size.abandoned ?? givenUp))));
    log.iterateTo(last ? size.positions : Math.max(log.position + 1, Math.floor((half * term) / size.terms)));
    if (!last) log.seal();
  }
  log.end();
  return { runId: log.runId, objects: log.objects };
}

class LogWriter {
  readonly runId = makeRunId('long', new Date(at), '0001');
  readonly objects = new Map<string, Uint8Array>();
  readonly #size: LogSize;
  readonly #states = [digestOf('base')];
  /** The record that ends at each position of the log, and the term that contains it. */
  readonly #records: { readonly digest: string; readonly term: number }[] = [];
  #lineage: [number, number, number][] = [];
  #term = 0;
  #from = 0;
  #statuses = 0;
  #passes = 0;
  position = 0;

  constructor(size: LogSize) {
    this.#size = size;
  }

  begin(): void {
    const { runId } = this;
    this.#write(keys.run(runId), { format: recordFormat, runId, name: 'long', kind: 'rl', createdAt: at });
    const recipe = parseRecipe({
      name: 'long',
      model: { path: './model' },
      data: { train_files: 'train.jsonl', val_files: 'val.jsonl' },
      trainer: {
        total_training_steps: 1_000_000,
        test_freq: this.#size.validationEvery,
        save_freq: this.#size.checkpointEvery,
        max_actor_ckpt_to_keep: this.#size.keep ?? null,
      },
    });
    const revision: RevisionRecord = {
      format: recordFormat,
      runId,
      revision: 1,
      fromPosition: 0,
      recipe: { ...recipe },
      inputs: { model: digestOf('model'), train: digestOf('rows'), trainRows: 8, validation: digestOf('rows') },
      createdAt: at,
    };
    this.#write(keys.revision(runId, 1), revision);
  }

  /** Opens the next term, which continues from `position`. */
  openTerm(term: number, position: number): void {
    const parent = this.#records[position];
    if (parent !== undefined && term > 1) {
      this.#lineage = [[this.#term, this.#from, 1] as [number, number, number], ...this.#lineage].filter(
        ([one]) => one <= parent.term,
      );
    }
    const record: TermRecord = {
      format: recordFormat,
      runId: this.runId,
      term,
      ...(parent === undefined || term === 1
        ? {}
        : {
            parent: { term: parent.term, position, record: parent.digest },
            ...(this.#size.lineage === false ? {} : { lineage: this.#lineage }),
          }),
      startState: this.#stateAt(position),
      components: { actor: { ...stateOf(this.#stateAt(position)), profile } },
      revision: 1,
      owner,
      reason: term === 1 ? 'start' : `redo from iteration ${position}`,
      skippedDraws: [],
      writer,
    };
    const digest = this.#write(keys.term(this.runId, term), record);
    if (term === 1) this.#records[0] = { digest, term };
    [this.#term, this.#from, this.position] = [term, position, position];
    this.#states.length = position + 1;
    this.#status('running');
    if (term === 1) this.#evaluate();
  }

  iterateTo(position: number): void {
    while (this.position < position) this.#iterate();
  }

  /** Closes the term. */
  seal(): void {
    const seal: BatchSeal = {
      format: recordFormat,
      runId: this.runId,
      term: this.#term,
      iteration: this.position + 1,
      parent: this.#recordAt(this.position).digest,
      decision: 'seal',
      owner,
      reason: 'redo',
      writer,
    };
    this.#write(keys.batch(this.runId, this.#term, this.position + 1), seal);
    this.#status('stopped');
  }

  end(): void {
    this.#status(this.#size.state);
  }

  #iterate(): void {
    const k = this.position + 1;
    const [before, state] = [this.#stateAt(k - 1), digestOf(['state', this.#term, k])];
    const shared = { format: recordFormat, runId: this.runId, term: this.#term, iteration: k } as const;
    const batch: BatchRecord = {
      ...shared,
      parent: this.#recordAt(k - 1).digest,
      parentState: before,
      revision: 1,
      tensors: digestOf(['tensors', this.#term, k]),
      ...ordinaryBatch,
      before: countersAt(k - 1),
      after: countersAt(k),
      metrics: { 'critic/score/mean': 0.5, 'training/tokens': 100 },
    };
    const update: UpdateRecord = {
      ...shared,
      batch: this.#write(keys.batch(this.runId, this.#term, k), batch),
      parentState: before,
      outcome: 'applied',
      stateDigest: state,
      components: {
        actor: {
          ...stateOf(state),
          steps: [{ lr: 1e-6, gradNorm: 1, taken: true }],
          publications: { F32: weightsOf(state) },
        },
      },
      after: countersAt(k),
      metrics: { 'actor/grad_norm': 1 },
      timings: { 'timing_s/update': 0.5 },
      writer,
    };
    this.#records[k] = { digest: this.#write(keys.update(this.runId, this.#term, k), update), term: this.#term };
    [this.#states[k], this.position] = [state, k];
    if (k % this.#size.validationEvery === 0) this.#evaluate();
    if (k % this.#size.checkpointEvery === 0) this.#checkpoint();
    if (k % retentionEvery === 0) this.#passOver();
  }

  #evaluate(): void {
    const record: EvalRecord = {
      format: recordFormat,
      runId: this.runId,
      term: this.#term,
      iteration: this.position,
      weightsDigest: weightsOf(this.#stateAt(this.position)),
      questions: 4,
      failed: 0,
      accuracy: 1 - 1 / (2 + this.position),
      metrics: {},
      timings: {},
      results: [],
      writer,
    };
    this.#write(keys.evaluation(this.runId, this.#term, this.position), record);
  }

  #checkpoint(): void {
    const stateDigest = this.#stateAt(this.position);
    const manifest: CheckpointManifest = {
      format: recordFormat,
      runId: this.runId,
      term: this.#term,
      iteration: this.position,
      stateDigest,
      components: { actor: { ...stateOf(stateDigest), steps: this.position, parts: [], shards: [], parameters: [] } },
    };
    this.#write(keys.checkpoint(this.runId, this.position, stateDigest), manifest);
  }

  /** The entry of a janitor that has removed nothing. */
  #passOver(): void {
    const entry: RetentionEntry = {
      format: recordFormat,
      runId: this.runId,
      n: ++this.#passes,
      at,
      ...{ floor: 0, cleared: 0, pins: [], marked: [], markedAt: '', shared: [], verified: [] },
    };
    this.#write(keys.retention(this.runId, entry.n), toStoredRetention(entry));
  }

  #status(state: RunState): void {
    const entry: StatusEntry = { format: recordFormat, runId: this.runId, n: ++this.#statuses, at, wish: 'run', state };
    this.#write(keys.status(this.runId, entry.n), entry);
  }

  #stateAt(position: number): string {
    return present(this.#states[position], `state ${position}`);
  }

  #recordAt(position: number): { readonly digest: string } {
    return present(this.#records[position], `record ${position}`);
  }

  #write(key: string, record: object): string {
    const bytes = encodeRecord(record);
    this.objects.set(key, bytes);
    return sha256(bytes);
  }
}

const profile = {
  id: 'p',
  compute: 'fp32',
  deterministic: true,
  engine: 'native',
  device: 'avx2',
  build: 'test',
  maxTokensPerMicroBatch: 64,
} as const;

const ordinaryBatch = {
  oldLogProbs: 'on-policy',
  components: {
    actor: {
      profile: profile.id,
      learningRates: [1e-6],
      loss: {
        kind: 'policy',
        lossMode: 'vanilla',
        clipRatioLow: 0.2,
        clipRatioHigh: 0.2,
        clipRatioC: 3,
        lossAggMode: 'token-mean',
        entropyCoeff: 0,
        useKlLoss: false,
        klLossCoef: 0,
        klLossType: 'k1',
        temperature: 1,
        lossScaleFactor: 1,
      },
      optimizer: { beta1: 0.9, beta2: 0.999, eps: 1e-8, weightDecay: 0.01, maxGradNorm: 1 },
    },
  },
  results: [],
  draws: [],
  timings: { 'timing_s/rollout': 0.25 },
  decision: 'train',
  writer,
} satisfies Partial<BatchRecord>;

const countersAt = (k: number): Counters => ({
  cursor: 8 * k,
  optimizerSteps: { actor: k },
  badSteps: 0,
  controllers: { klCoef: 0 },
});

const weightsOf = (state: string): string => digestOf(['weights', state]);
const stateOf = (stateDigest: string) => ({ stateDigest, weightsDigest: weightsOf(stateDigest) });

function present<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`the generated log has no ${what}`);
  return value;
}
