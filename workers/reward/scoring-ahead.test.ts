import { describe, expect, it } from 'vitest';
import type { ScoreOutcome } from '../../rewards/host/scorer-host.ts';
import { ScoringAhead } from './scoring-ahead.ts';
import type { AheadLimits, AheadSample } from './scoring-ahead.ts';

const one: ScoreOutcome = { ok: true, score: 1, columns: {} };
const unexpected = (error: unknown): void => {
  throw error;
};

/** Scoring whose calls end when the test says so. */
class Bed {
  readonly begun: string[] = [];
  readonly aborted: string[] = [];
  readonly ends = new Map<string, (outcome: ScoreOutcome | Error) => void>();
  changes = 0;
  readonly ahead: ScoringAhead;

  constructor(limits?: AheadLimits) {
    this.ahead = new ScoringAhead(() => (this.changes += 1), limits);
  }

  sample(key: string, runId = 'a', bytes = 10): AheadSample {
    return {
      key,
      runId,
      jobId: `job of ${runId}`,
      bytes,
      score: (signal) => {
        this.begun.push(key);
        return new Promise((resolve, reject) => {
          signal.addEventListener('abort', () => {
            this.aborted.push(key);
            reject(signal.reason);
          });
          this.ends.set(key, (outcome) => (outcome instanceof Error ? reject(outcome) : resolve(outcome)));
        });
      },
    };
  }

  add(keys: readonly string[], runId = 'a', failed = unexpected): void {
    this.ahead.add(
      runId,
      keys.map((key) => this.sample(key, runId)),
      2,
      failed,
    );
  }

  async end(key: string, outcome: ScoreOutcome | Error = one): Promise<void> {
    this.ends.get(key)?.(outcome);
    await new Promise(setImmediate);
  }
}

describe('scoring ahead', () => {
  it('scores as many samples of a run at a time as it has scorers, each once', async () => {
    const bed = new Bed();
    bed.add(['1', '2', '3']);
    bed.add(['1', '3']);
    expect(bed.begun).toEqual(['1', '2']);
    await bed.end('1');
    await bed.end('2');
    await bed.end('3');
    expect(bed.begun).toEqual(['1', '2', '3']);
    expect(await bed.ahead.take('1')).toBe(one);
    bed.add(['1']);
    expect(bed.begun).toHaveLength(3);
  });

  it('leaves a waiting sample to the reward job, and gives it one that is being scored', async () => {
    const bed = new Bed();
    bed.add(['1', '2', '3']);
    expect(bed.ahead.take('3')).toBeUndefined();
    expect(bed.ahead.take('unknown')).toBeUndefined();
    const taken = bed.ahead.take('1');
    await bed.end('1');
    await bed.end('2');
    expect(await taken).toBe(one);
    expect(bed.begun).toEqual(['1', '2']);
  });

  it('names the jobs of its samples until their result is committed', async () => {
    const bed = new Bed();
    bed.add(['1']);
    expect(bed.ahead.jobs).toEqual(['job of a']);
    await bed.end('1');
    expect([bed.ahead.jobs, bed.changes]).toEqual([['job of a'], 1]);
    bed.ahead.release(['1']);
    expect([bed.ahead.jobs, bed.changes]).toEqual([[], 2]);
  });

  it('of an ended run stops at once, and begins no more until a reward job shows that the run goes on', async () => {
    const bed = new Bed();
    bed.add(['1', '2', '3']);
    const taken = bed.ahead.take('1');
    bed.ahead.drop('a');
    expect(bed.aborted).toEqual(['1', '2']);
    expect(await taken).toBeUndefined();
    expect(bed.ahead.jobs).toEqual([]);
    bed.add(['4']);
    expect(bed.begun).toEqual(['1', '2']);
    bed.ahead.isAlive('a');
    bed.add(['4']);
    expect(bed.begun).toEqual(['1', '2', '4']);
  });

  it('stops, and says why once, when the scorer cannot be called', async () => {
    const bed = new Bed();
    const errors: unknown[] = [];
    bed.add(['1', '2', '3'], 'a', (error) => errors.push(error));
    const trouble = new Error('it cannot be loaded');
    const taken = bed.ahead.take('1');
    await bed.end('1', trouble);
    expect(await taken).toBeUndefined();
    expect(errors).toEqual([trouble]);
    await bed.end('2');
    bed.add(['4']);
    expect(bed.begun).toEqual(['1', '2']);
  });

  it('stops with the samples of a job that another worker scores', async () => {
    const bed = new Bed();
    bed.add(['1', '2', '3', '4']);
    await bed.end('1');
    bed.ahead.taken('a', 'job of a');
    await bed.end('2');
    await bed.end('3');
    expect(bed.begun).toEqual(['1', '2', '3']);
    expect(['1', '2', '3'].map((key) => bed.ahead.take(key))).toEqual([undefined, undefined, undefined]);
    expect(bed.ahead.jobs).toEqual([]);
  });

  it('leaves a run out while two others have samples to score', async () => {
    const bed = new Bed();
    bed.add(['1'], 'a');
    bed.add(['2'], 'b');
    bed.add(['3'], 'c');
    expect(bed.begun).toEqual(['1', '2']);
    await bed.end('1');
    bed.add(['3'], 'c');
    expect(bed.begun).toEqual(['1', '2', '3']);
  });

  it('keeps within its memory: it forgets the oldest outcomes, and takes no sample for which there is no room', async () => {
    const bed = new Bed({ runs: 2, bytes: 100 });
    bed.ahead.add('a', [bed.sample('1', 'a', 60), bed.sample('2', 'a', 60)], 2, unexpected);
    expect(bed.begun).toEqual(['1']);
    await bed.end('1');
    bed.ahead.add('a', [bed.sample('2', 'a', 90)], 2, unexpected);
    expect(bed.begun).toEqual(['1', '2']);
    expect(bed.ahead.take('1')).toBeUndefined();
  });
});
