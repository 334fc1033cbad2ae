/**
 * The job results that a batch or a validation names. They must exist and match their digests, and only one iteration
 * may use each of them.
 */
import { mapped } from './components.ts';
import { at } from './at.ts';
import { canonicalText } from './canonical.ts';
import type { Objects } from './objects.ts';
import { compareOutputShape, countersOf1, resultShape, rewardOutputShape, rolloutOutputShape } from './records.ts';
import type { Batch, Counters1 } from './records.ts';
import { show } from './verdict.ts';

/** Responses with their scores. */
export interface Part {
  readonly trajectories: string;
  readonly samples: number;
  readonly scores: string;
  readonly failed: number;
}

/** Pairs of given responses, and the table of which was preferred. */
export interface Comparison {
  readonly scores: string;
  readonly pairs: number;
}

type Output = Readonly<Record<string, unknown>>;

export class Results {
  readonly #objects: Objects;
  /** The batch that uses each result. */
  readonly #owners = new Map<string, string>();

  constructor(objects: Objects) {
    this.#objects = objects;
  }

  /**
   * Rollouts with their rewards, in order of draws. The last result of a batch belongs to the job that made the batch.
   */
  async ofBatch(batch: Batch, key: string): Promise<Part[]> {
    for (const jobId of [...batch.results, ...(batch.baselines ?? [])]) {
      const owner = this.#owners.get(jobId);
      if (owner !== undefined)
        this.#objects.faults.add(key, `result ${jobId} used by one batch`, `${owner} uses it too`);
      this.#owners.set(jobId, key);
    }
    const made = await this.#outputs(batch.results.slice(-1), ['advantage'], key);
    if (made[0] !== undefined) this.#compare(batch, made[0], key);
    else if (batch.results.length === 0)
      this.#objects.faults.add(key, 'the result that the batch was made from', 'none');
    return this.parts(batch.results.slice(0, -1), key);
  }

  /** Pairs of a rollout and its reward, one after the other. */
  async parts(jobIds: readonly string[], key: string): Promise<Part[]> {
    const outputs = await this.#outputs(jobIds, ['rollout', 'reward'], key);
    const parts: Part[] = [];
    for (let i = 0; i + 1 < outputs.length; i += 2) {
      const [rollout, reward] = [outputs[i], outputs[i + 1]];
      if (rollout === undefined || reward === undefined) continue;
      const where = this.#objects.keys.result(at(jobIds, i));
      const part = this.#objects.tried(where, 'outputs of a rollout and its reward', () => ({
        ...rolloutOutputShape(rollout, 'rollout'),
        ...rewardOutputShape(reward, 'reward'),
      }));
      if (part !== undefined) parts.push(part);
    }
    if (outputs.length % 2 !== 0)
      this.#objects.faults.add(key, 'a reward for every rollout', `${outputs.length} results`);
    return parts;
  }

  /** The comparison that a validation on pairs names. */
  async comparison(jobIds: readonly string[], key: string): Promise<Comparison | undefined> {
    if (jobIds.length !== 1) this.#objects.faults.add(key, 'one comparison of pairs', `${jobIds.length} results`);
    const [output] = await this.#outputs(jobIds.slice(0, 1), ['compare'], key);
    if (output === undefined) return undefined;
    const where = this.#objects.keys.result(at(jobIds, 0));
    return this.#objects.tried(where, 'the output of a comparison', () => compareOutputShape(output, 'compare'));
  }

  /** Outputs in order; undefined where one is damaged or missing. The jobs have the `stages` in turn. */
  async #outputs(jobIds: readonly string[], stages: readonly string[], key: string): Promise<(Output | undefined)[]> {
    const { faults, keys } = this.#objects;
    const outputs: (Output | undefined)[] = [];
    for (const [i, jobId] of jobIds.entries()) {
      const stage = at(stages, i % stages.length);
      if (!new RegExp(`^${stage}-[0-9a-f]{32}$`).test(jobId)) {
        faults.add(key, `the result of a ${stage} job`, show(jobId));
        outputs.push(undefined);
        continue;
      }
      const record = await this.#objects.need(keys.result(jobId), resultShape, `${key} names it`);
      outputs.push(record?.output);
      if (record === undefined) continue;
      faults.equal(keys.result(jobId), 'jobId', jobId, record.jobId);
      faults.equal(keys.result(jobId), 'stage', stage, record.stage);
      const isSharded = stage === 'advantage' && 'shards' in record.output;
      faults.equal(keys.result(jobId), 'format 4, of a batch in shards:', isSharded, record.format === 4);
    }
    return outputs;
  }

  /** The job proposes values, and the batch record decides: both must be equal. */
  #compare(batch: Batch, made: Output, key: string): void {
    const components = mapped(batch.components, ({ profile: _, ...trained }) => trained);
    for (const field of [
      'tensors',
      'shards',
      'oldLogProbs',
      'layout',
      'components',
      'draws',
      'after',
      'metrics',
    ] as const) {
      const [proposed, decided] = [asOfFormat2(made)[field], { ...batch, components }[field]].map((value) =>
        value === undefined ? 'nothing' : canonicalText(value),
      );
      if (proposed !== decided)
        this.#objects.faults.add(key, `${field}, as in its result: ${show(proposed)}`, show(decided));
    }
  }
}

/** Workers of format 1 answered what is now in `components.actor` beside the other fields. */
function asOfFormat2(made: Output): Output {
  const { learningRates, loss, optimizer, after, ...rest } = made;
  if (learningRates === undefined) return made;
  return {
    ...rest,
    components: { actor: { learningRates, loss, optimizer } },
    after: countersOf1((after ?? {}) as Counters1),
  };
}
