/** The job results that a batch or a validation names: they exist, are what they claim, and serve one iteration only. */
import { canonicalText } from './canonical.ts';
import type { Objects } from './objects.ts';
import { resultShape, rewardOutputShape, rolloutOutputShape } from './records.ts';
import type { Batch } from './records.ts';
import { show } from './verdict.ts';

/** Responses with their scores. */
export interface Part {
  readonly trajectories: string;
  readonly samples: number;
  readonly scores: string;
  readonly failed: number;
}

type Output = Readonly<Record<string, unknown>>;

export class Results {
  readonly #objects: Objects;
  /** Which batch was made of a result. */
  readonly #owners = new Map<string, string>();

  constructor(objects: Objects) {
    this.#objects = objects;
  }

  /** Rollouts with their rewards, in order of draws. The last result of a batch is the job that made it. */
  async ofBatch(batch: Batch, key: string): Promise<Part[]> {
    for (const jobId of batch.results) {
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

  /** A rollout and its reward, one pair behind the other. */
  async parts(jobIds: readonly string[], key: string): Promise<Part[]> {
    const outputs = await this.#outputs(jobIds, ['rollout', 'reward'], key);
    const parts: Part[] = [];
    for (let i = 0; i + 1 < outputs.length; i += 2) {
      const [rollout, reward] = [outputs[i], outputs[i + 1]];
      if (rollout === undefined || reward === undefined) continue;
      const where = this.#objects.keys.result(jobIds[i] ?? '');
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

  /** Outputs in order; undefined where one is damaged or absent. `stages` come in turn. */
  async #outputs(jobIds: readonly string[], stages: readonly string[], key: string): Promise<(Output | undefined)[]> {
    const { faults, keys } = this.#objects;
    const outputs: (Output | undefined)[] = [];
    for (const [i, jobId] of jobIds.entries()) {
      const stage = stages[i % stages.length] ?? '';
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
    }
    return outputs;
  }

  /** The batch record decides what the job proposed. */
  #compare(batch: Batch, made: Output, key: string): void {
    for (const field of [
      'tensors',
      'oldLogProbs',
      'learningRates',
      'loss',
      'optimizer',
      'draws',
      'after',
      'metrics',
    ] as const) {
      const [proposed, decided] = [made[field], batch[field]].map((value) =>
        value === undefined ? 'nothing' : canonicalText(value),
      );
      if (proposed !== decided)
        this.#objects.faults.add(key, `${field} as its result has it: ${show(proposed)}`, show(decided));
    }
  }
}
