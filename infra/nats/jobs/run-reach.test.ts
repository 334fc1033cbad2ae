import { describe, expect, it } from 'vitest';
import type { JobRequest, JobResult } from '../../../core/ports/jobs.ts';
import type { Stage } from '../../../core/wire/jobs/index.ts';
import { RunReach } from './run-reach.ts';

/** Plays iterations of one rollout and its reward, whose seconds follow from the limit. */
class Played {
  #nowMs = 0;
  readonly said: string[] = [];
  readonly reach = new RunReach(
    (_, text) => this.said.push(text),
    () => this.#nowMs,
  );

  /** Gives the limits of the rollout and of its reward. */
  iteration(iteration: number, seconds: (limit?: number) => number, roundTrips = [0.3, 80], purpose = 'train') {
    const rollout = job('rollout', iteration, { purpose });
    const limit = this.reach.limitFor(rollout, () => roundTrips);
    this.#nowMs += 1_000 * seconds(limit);
    this.reach.ended(rollout, { output: { responseTokens: 100 } } as unknown as JobResult);
    const reward = job('reward', iteration, {}, rollout.jobId);
    return [limit, this.reach.limitFor(reward, () => roundTrips)];
  }
}

function job(stage: Stage, iteration: number, input: object, follows?: string) {
  const request = { stage, runId: 'run', at: { term: 1, iteration }, profile: 'any', input, follows };
  return { request: request as unknown as JobRequest<Stage>, jobId: `${stage}-${iteration}` };
}

describe('an iteration', () => {
  it('is for any worker where none is far, and so are its rewards', () => {
    const played = new Played();
    expect([0, 1, 2].map((i) => played.iteration(i, () => 1, [0.2, 0.3]))).toEqual(
      Array.from({ length: 3 }, () => [undefined, undefined]),
    );
    expect(played.said).toEqual([]);
  });

  it('is for near workers, then for all once, and the run learns which took longer', () => {
    const played = new Played();
    const limits = [0, 1, 2, 3, 4].map((i) => played.iteration(i, (limit) => (limit === 10 ? 0.25 : 0.8)));
    expect(limits).toEqual([
      [10, 10],
      [10, 10],
      [undefined, undefined],
      [10, 10],
      [10, 10],
    ]);
    expect(played.said).toEqual([
      'workers with a round trip above 10 ms take no part for now: an iteration takes 0.80 s with them and 0.25 s without',
    ]);
  });

  it('in which the run paused counts for nothing', () => {
    const played = new Played();
    for (const i of [0, 1]) played.iteration(i, () => 1);
    played.reach.leave('run');
    for (const [i, seconds] of [
      [2, 0.001],
      [3, 1],
      [4, 0.5],
      [5, 1],
    ] as const)
      played.iteration(i, () => seconds);
    expect(played.said).toEqual([
      'workers with a round trip above 10 ms take part: an iteration takes 0.50 s with them and 1.00 s without',
    ]);
  });

  it('of a validation is for those who are best so far, and no trial', () => {
    const played = new Played();
    for (const i of [0, 1]) played.iteration(i, () => 1);
    expect(played.iteration(1, () => 1, [0.3, 80], 'validate')[0]).toBe(10);
    expect(played.iteration(2, () => 0.5)[0]).toBeUndefined();
  });
});
