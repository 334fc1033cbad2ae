/**
 * How long after an update the samplers have its weights, and what they read from the store: `npm run bench:weights --
 * [--size S|M|R] [--samplers 1,4,8] [--compute fp32|bf16] [--share on,off] [--json]`. Real runs on one machine: with
 * workers that get weights from the trainer and from each other (on), and with workers that all read the store (off). A
 * run's number is the median of its iterations, without the first two.
 */
import { parseArgs } from 'node:util';
import { sizeNames, sizeOf } from '../bench/sizes.ts';
import type { SizeName } from '../bench/sizes.ts';
import { at } from '../core/at.ts';
import { actorOf } from '../core/records/components.ts';
import { keys } from '../core/records/keys.ts';
import { resultRecord } from '../core/records/schema.ts';
import { needRecord } from '../log/objects/records.ts';
import { checkpointElements } from '../models/checkpoint.ts';
import { sharesVariable } from '../workers/membership.ts';
import { LoopUnderTest } from './loop-under-test.ts';
import type { Iteration, StartedRun } from './loop-under-test.ts';

const { values } = parseArgs({
  options: {
    size: { type: 'string', default: 'R' },
    samplers: { type: 'string', default: '1,4,8' },
    compute: { type: 'string', default: 'fp32' },
    share: { type: 'string', default: 'on,off' },
    json: { type: 'boolean', default: false },
  },
});
const size = values.size as SizeName;
if (!sizeNames.includes(size)) throw new Error(`--size: expected ${sizeNames.join(', ')}, got ${values.size}`);
const { compute } = values;
if (compute !== 'fp32' && compute !== 'bf16') throw new Error(`--compute: expected fp32 or bf16, got ${compute}`);
const counts = values.samplers.split(',').map(Number);
if (!counts.every((count) => Number.isInteger(count) && count > 0))
  throw new Error(`--samplers: expected numbers like 1,4,8, got ${values.samplers}`);

/** Iterations whose weights are loaded into engines that exist already. */
const measured = 5;
const warmUp = 2;

interface Row {
  readonly samplers: number;
  readonly share: 'on' | 'off';
  readonly compute: 'fp32' | 'bf16';
  /** Size of the weights in fp32. */
  readonly weightsGb: number;
  /** What a sampler loads. */
  readonly publishedGb: number;
  /** Seconds from the commit of an update until the last sampler has its weights. */
  readonly seconds: number;
  /** The same for each GB of `weightsGb`. */
  readonly secondsPerGb: number;
  /** Bytes that all samplers together read from the store for one publication, as a multiple of it. */
  readonly readFromStore: number;
  readonly updateSeconds: number;
}

const rows: Row[] = [];
for (const samplers of counts)
  for (const share of (['on', 'off'] as const).filter((one) => values.share.split(',').includes(one))) {
    const row = await measure(samplers, share, compute);
    rows.push(row);
    if (values.json) console.log(JSON.stringify(row));
  }
if (!values.json) console.table(rows);

async function measure(samplers: number, share: 'on' | 'off', compute: 'fp32' | 'bf16'): Promise<Row> {
  process.env[sharesVariable] = share;
  const { tie_word_embeddings: _, ...shape } = sizeOf(size, false).shape;
  const loop = new LoopUnderTest(undefined, { ...shape, max_position_embeddings: 64 });
  try {
    await loop.up([
      { name: 'train', count: 1, roles: ['trainer'], threads: 1 },
      { name: 'sample', count: samplers, roles: ['rollout'], threads: 1 },
      { name: 'score', count: 1, roles: ['reward'], threads: 1 },
    ]);
    const run = await loop.start({
      data: { train_batch_size: 2 * samplers },
      model: { compute_dtype: compute },
      rollout: { n: 2, max_num_seqs: 2 },
      actor: { optim: { weight_decay: 0.1 } }, // so that the weights change, whatever the scores are
      trainer: { total_training_steps: warmUp + measured },
    });
    const { state } = await loop.ended(run);
    if (state !== 'completed') throw new Error(`the run of ${samplers} samplers is ${state}`);
    const all = await loop.iterations(run);
    const iterations = all.slice(warmUp);
    const { weightsGb, publishedGb } = await sizesOf(run);
    const waited = await Promise.all(
      iterations.map((iteration, i) => exposed(loop, run, at(all, warmUp + i - 1), iteration)),
    );
    const read = iterations.map(({ batch }) => Number(batch.timings['perf/weights_from_store_gb'] ?? 0));
    return {
      samplers,
      share,
      compute,
      weightsGb: round(weightsGb),
      publishedGb: round(publishedGb),
      seconds: round(median(waited)),
      secondsPerGb: round(median(waited) / weightsGb),
      readFromStore: round(median(read) / publishedGb),
      updateSeconds: round(
        median(iterations.map(({ update }) => Number(update.timings['timing_s/update_actor'] ?? 0))),
      ),
    };
  } finally {
    await loop.remove();
  }
}

/**
 * Time from the commit of the update until the last sampler with a job has its weights. The result of a job says when
 * the job ended and how long it took, and its first part was the wait for weights.
 */
async function exposed(loop: LoopUnderTest, run: StartedRun, before: Iteration, { batch }: Iteration): Promise<number> {
  const results = await Promise.all(
    batch.results.map(async (id) => (await needRecord(loop.store, keys.result(run.runId, id), resultRecord)).record),
  );
  const ready = new Map<string, number>();
  for (const { timings, writer, stage } of results) {
    if (stage !== 'rollout') continue;
    const after = Number(timings['timing_s/rollout']) - Number(timings['timing_s/load_weights'] ?? 0);
    const at = Date.parse(writer.at) / 1_000 - after;
    ready.set(writer.process, Math.min(at, ready.get(writer.process) ?? at));
  }
  return Math.max(...ready.values()) - Date.parse(before.update.writer.at) / 1_000;
}

/** Sizes from the parameters of the last checkpoint. */
async function sizesOf({ log }: StartedRun): Promise<Pick<Row, 'weightsGb' | 'publishedGb'>> {
  const head = await log.head();
  const saved = head && (await log.checkpoints.manifestOf(head.position, head.stateDigest));
  if (head === undefined || saved === undefined) throw new Error('the run has saved no state');
  const policy = actorOf(saved.record.components);
  const rounded = policy.parameters.filter(({ name, shape }) => shape.length === 2 && !name.includes('embed'));
  const saving = head.publication.format === 'F32' ? 0 : 2 * checkpointElements({ parameters: rounded });
  const bytes = 4 * checkpointElements(policy);
  return { weightsGb: bytes / 1e9, publishedGb: (bytes - saving) / 1e9 };
}

function median(all: readonly number[]): number {
  const sorted = [...all].sort((a, b) => a - b);
  return at(sorted, Math.floor(sorted.length / 2));
}

function round(value: number): number {
  return Number(value.toPrecision(3));
}
