import { describe, expect, it } from 'vitest';
import type { WorkerEvent } from '../wire/worker-event.ts';
import { WorkerEvents } from './worker-events.ts';
import type { AnnouncedWorker } from './worker-events.ts';

function watched() {
  const told: WorkerEvent[] = [];
  const events = new WorkerEvents((event) => told.push(event));
  const texts = () =>
    told.splice(0).map(({ type, instance, worker, by }) => {
      const successor = by === undefined ? '' : ` by ${by.instance}/${by.worker}`;
      return `${type} ${instance}/${worker}${successor}`;
    });
  return { events, told, texts };
}

const worker = (instance: string, part: Partial<AnnouncedWorker> = {}): AnnouncedWorker => ({
  instance,
  worker: 'w1',
  incarnation: `${instance}-a`,
  roles: ['rollout', 'reward'],
  state: 'ready',
  ...part,
});

describe('what became of workers', () => {
  it('is one event for each process that joins, however often it announces itself', () => {
    const { events, texts } = watched();
    for (const state of ['starting', 'ready', 'busy', 'ready'] as const) events.heard(worker('i-1', { state }), 0);
    expect(texts()).toEqual(['joined i-1/w1']);
    expect(events.count).toBe(1);
  });

  it('is nothing for those that were there before anybody watched', () => {
    const { events, texts } = watched();
    events.found(worker('i-1'), 0);
    events.heard(worker('i-1'), 1);
    expect(texts()).toEqual([]);
    events.lost({ instance: 'i-1', worker: 'w1', incarnation: 'i-1-a' }, 2);
    expect(texts()).toEqual(['lost i-1/w1']);
  });

  it('is a loss and a successor when a process is started again at its place, whichever is noticed first', () => {
    const again = worker('i-1', { incarnation: 'b', predecessorEnded: 'SIGSEGV' });
    const first = { instance: 'i-1', worker: 'w1', incarnation: 'i-1-a' };
    for (const order of ['closed first', 'announced first']) {
      const { events, told, texts } = watched();
      events.found(worker('i-1'), 0);
      if (order === 'closed first') events.lost(first, 1);
      events.heard(again, 2);
      if (order === 'announced first') expect(told[0]?.because).toBe('SIGSEGV');
      events.lost(first, 3);
      expect(texts(), order).toEqual(['lost i-1/w1', 'joined i-1/w1', 'replaced i-1/w1 by i-1/w1']);
    }
  });

  it('is a notice, and no loss, for one that was told to leave; the next one with its roles replaces it', () => {
    const { events, texts } = watched();
    events.found(worker('i-1'), 0);
    events.heard(worker('i-1', { atRisk: true }), 1);
    events.heard(worker('i-1', { atRisk: true, state: 'draining' }), 2);
    expect(texts()).toEqual(['notice i-1/w1']);
    events.heard(worker('i-2', { roles: ['trainer'] }), 3);
    expect(texts()).toEqual(['joined i-2/w1']);
    events.heard(worker('i-3', { roles: ['reward', 'rollout'] }), 4);
    expect(texts()).toEqual(['joined i-3/w1', 'replaced i-1/w1 by i-3/w1']);
    events.lost({ instance: 'i-1', worker: 'w1', incarnation: 'i-1-a' }, 5);
    events.heard(worker('i-4'), 6);
    expect(texts()).toEqual(['joined i-4/w1']);
  });

  it('is nothing for one that the fleet gives back', () => {
    const { events, texts } = watched();
    events.found(worker('i-1'), 0);
    events.givenBack('i-1');
    events.heard(worker('i-1', { state: 'draining' }), 1);
    events.lost({ instance: 'i-1', worker: 'w1', incarnation: 'i-1-a' }, 2);
    events.heard(worker('i-2'), 3);
    expect(texts()).toEqual(['joined i-2/w1']);
    expect(events.count).toBe(1);
  });

  it('knows no successor of one that is lost for long', () => {
    const { events, texts } = watched();
    events.found(worker('i-1'), 0);
    events.lost({ instance: 'i-1', worker: 'w1', incarnation: 'i-1-a' }, 1);
    events.heard(worker('i-2'), 600_001);
    expect(texts()).toEqual(['lost i-1/w1', 'joined i-2/w1']);
  });

  it('is a loss for those that are silent, where no server tells', () => {
    const { events, texts } = watched();
    events.found(worker('i-1'), 0);
    events.found(worker('i-2'), 10);
    events.expire(5, 20);
    expect(texts()).toEqual(['lost i-1/w1']);
    expect(events.count).toBe(1);
    events.deafUntil(30);
    events.expire(25, 40);
    expect(texts()).toEqual([]);
  });
});
