import { describe, expect, it } from 'vitest';
import type { Presence } from '../core/wire/messages.ts';
import { Peers } from './peers.ts';

const entry = (worker: string, more: Partial<Presence> = {}): Presence => ({
  v: 1,
  instance: 'here',
  worker,
  incarnation: `${worker}-1`,
  pid: 1,
  host: 'h',
  roles: ['trainer'],
  state: 'ready',
  isa: 'x',
  threads: 1,
  profiles: [],
  jobs: [],
  failuresInARow: 0,
  loopDelayMs: 0,
  since: '',
  ...more,
});

describe('the peers of a worker', () => {
  it('train a run while their presence says so, is recent, and accepts jobs', () => {
    const peers = new Peers('own', 100);
    expect(peers.trains('a', 0)).toBe(false);
    peers.heard(entry('w2', { lease: 'a' }), 0);
    expect(peers.trains('a', 50)).toBe(true);
    expect(peers.trains('b', 50)).toBe(false);
    expect(peers.trains('a', 101)).toBe(false);
    peers.heard(entry('w2', { lease: 'a', state: 'draining' }), 110);
    expect(peers.trains('a', 111)).toBe(false);
    peers.heard(entry('w2'), 120);
    expect(peers.trains('a', 121)).toBe(false);
  });

  it('follow a run as its standby, and do not train it', () => {
    const peers = new Peers('own', 100);
    peers.heard(entry('w2', { lease: 'a', standsBy: true }), 0);
    expect([peers.trains('a', 1), peers.standsBy('a', 1), peers.standsBy('b', 1)]).toEqual([false, true, false]);
    peers.heard(entry('w2', { lease: 'a' }), 2);
    expect([peers.trains('a', 3), peers.standsBy('a', 3)]).toEqual([true, false]);
  });

  it('are forgotten when the control process says that they are gone, unless another process has taken their place', () => {
    const peers = new Peers('own', 100);
    const gone = { instance: 'here', worker: 'w2', incarnation: 'w2-1' };
    peers.heard(entry('w2', { lease: 'a', incarnation: 'w2-2' }), 0);
    peers.gone(gone);
    expect(peers.trains('a', 1)).toBe(true);
    peers.heard(entry('w2', { lease: 'a' }), 2);
    peers.gone(gone);
    expect(peers.trains('a', 3)).toBe(false);
  });

  it('train some components of a run that is divided', () => {
    const peers = new Peers('own', 100);
    peers.heard(entry('w2', { lease: 'a', trains: ['actor', 'logZ'] }), 0);
    expect(peers.trains('a', 1)).toBe(true);
    expect(peers.trains('a', 1, ['actor'])).toBe(true);
    expect(peers.trains('a', 1, ['critic'])).toBe(false);
    expect(peers.trains('b', 1, ['actor'])).toBe(false);
  });

  it('are free trainers while they work for no run, serve the profile, and take jobs', () => {
    const peers = new Peers('own', 100);
    const free = (more: Partial<Presence>, profile = 'p') => {
      peers.heard(entry('w2', { profiles: ['p'], ...more }), 0);
      return peers.hasFreeTrainer(profile, 1);
    };
    expect(free({})).toBe(true);
    expect(free({ lease: 'a' })).toBe(false);
    expect(free({ roles: ['rollout'] })).toBe(false);
    expect(free({ state: 'draining' })).toBe(false);
    expect(free({}, 'q')).toBe(false);
    expect(peers.hasFreeTrainer('p', 101)).toBe(false);
  });

  it('do not include the worker itself', () => {
    const peers = new Peers('w1-1', 100);
    peers.heard(entry('w1', { lease: 'a' }), 0);
    expect(peers.trains('a', 1)).toBe(false);
  });

  it('score samples: always the same one for a rollout job, or the one that has its samples already', () => {
    const peers = new Peers('own', 100);
    expect(peers.scorerOf('rollout-0000', 0)).toBeUndefined();
    peers.heard(entry('b', { roles: ['reward'] }), 0);
    peers.heard(entry('a', { roles: ['reward'] }), 0);
    peers.heard(entry('c', { roles: ['rollout'] }), 0);
    expect(['rollout-0000', 'rollout-0001', 'rollout-0002'].map((job) => peers.scorerOf(job, 1))).toEqual([
      'here.a.a-1',
      'here.b.b-1',
      'here.a.a-1',
    ]);
    peers.heard(entry('b', { roles: ['reward'], ahead: ['rollout-0000'] }), 2);
    expect(peers.scorerOf('rollout-0000', 3)).toBe('here.b.b-1');
    expect([peers.scoresAhead('rollout-0000', 3), peers.scoresAhead('rollout-0001', 3)]).toEqual([true, false]);
    const scores = (worker: string, now: number) => peers.scores(`here.${worker}.${worker}-1`, now);
    expect([scores('b', 3), scores('c', 3), scores('b', 200)]).toEqual([true, false, false]);
    peers.heard(entry('b', { roles: ['reward'], state: 'draining', ahead: ['rollout-0000'] }), 4);
    expect([peers.scoresAhead('rollout-0000', 5), peers.scorerOf('rollout-0000', 5)]).toEqual([false, 'here.a.a-1']);
  });
});
