import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Presence } from '../../../core/wire/messages.ts';
import { alsoTraining, mayTrain, scorerFor, trainerFor } from './choices.ts';
import type { TrainerJob } from './choices.ts';

const entry = (worker: string, more: Partial<Presence> = {}): Presence => ({
  v: 1,
  instance: 'here',
  worker,
  incarnation: `${worker}-1`,
  pid: 1,
  host: 'h',
  roles: ['trainer'],
  state: 'ready',
  engines: [],
  threads: 1,
  profiles: ['p'],
  jobs: [],
  failuresInARow: 0,
  loopDelayMs: 0,
  since: '',
  ...more,
});
const job = (more: Partial<TrainerJob> = {}): TrainerJob => ({ runId: 'a', queue: 'p', standby: false, ...more });
const chosen = (of: TrainerJob, present: readonly Presence[]) => {
  const found = trainerFor(of, present);
  return found && [found.to.worker, found.only];
};

describe('the trainer of a job', () => {
  it('leads the run, and no other may have the job', () => {
    expect(chosen(job(), [entry('t1'), entry('t2', { lease: 'a' })])).toEqual(['t2', true]);
  });

  it('is the standby when nobody leads', () => {
    const standby = entry('t2', { lease: 'a', standsBy: true });
    expect(chosen(job(), [entry('t1'), standby])).toEqual(['t2', true]);
    expect(chosen(job(), [entry('t3', { lease: 'a' }), standby])).toEqual(['t3', true]);
  });

  it('is a free one that has the profile; without one the job waits in the queue', () => {
    const present = [entry('t1', { lease: 'b' }), entry('t2', { profiles: ['q'] }), entry('t3')];
    expect(chosen(job(), present)).toEqual(['t3', false]);
    expect(chosen(job(), present.slice(0, 2))).toBeUndefined();
    expect(chosen(job({ queue: 'q' }), present.slice(0, 2))).toEqual(['t2', false]);
  });

  it('of a second part is a free one, else the one that has the other part', () => {
    const first = entry('t1', { lease: 'a', trains: ['actor'] });
    const critic = job({ components: ['critic'] });
    expect(chosen(critic, [first, entry('t2')])).toEqual(['t2', true]);
    expect(chosen(critic, [first])).toEqual(['t1', false]);
    expect(chosen(critic, [first, entry('t2', { lease: 'a', trains: ['critic'] })])).toEqual(['t2', true]);
  });

  it('of a standby is never the one that leads', () => {
    const leader = entry('t1', { lease: 'a' });
    const standby = job({ standby: true });
    expect(chosen(standby, [leader])).toBeUndefined();
    expect(chosen(standby, [leader, entry('t2')])).toEqual(['t2', false]);
    expect(mayTrain(standby, leader)).toBe(false);
    expect(mayTrain(job(), leader)).toBe(true);
  });

  it('is told of others that have what it takes', () => {
    const present = [
      entry('t1', { lease: 'a' }),
      entry('t2', { lease: 'a', standsBy: true }),
      entry('t3', { lease: 'b' }),
      entry('t4', { lease: 'a', trains: ['critic'] }),
    ];
    expect(alsoTraining(job({ components: ['actor'] }), 'here.t9', present).map(({ worker }) => worker)).toEqual([
      't1',
    ]);
  });
});

describe('the scorer of a rollout job', () => {
  const scorers = fc
    .uniqueArray(fc.nat(50), { minLength: 1, maxLength: 8 })
    .map((names) => names.map((name) => entry(`s${name}`, { roles: ['reward'] })));

  it('does not depend on the order in which the workers were heard', () => {
    fc.assert(
      fc.property(
        scorers,
        fc.nat().map((n) => n.toString(16)),
        (present, id) => {
          expect(scorerFor(`rollout-00${id}00ff`, [...present].reverse())).toBe(
            scorerFor(`rollout-00${id}00ff`, present),
          );
        },
      ),
    );
  });

  it('is the one that has samples of it', () => {
    const present = [entry('s1'), entry('s2', { ahead: ['rollout-1'] }), entry('s3')];
    expect(scorerFor('rollout-1', present)?.worker).toBe('s2');
    expect(scorerFor('rollout-1', [])).toBeUndefined();
  });
});
