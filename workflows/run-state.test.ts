import { describe, expect, it } from 'vitest';
import { RunProgress } from './run-state.ts';

function at(wish: RunProgress['wish'], position: number): RunProgress {
  return Object.assign(new RunProgress(), { wish, position, iterations: 3 });
}

describe('at the boundary of an iteration a run', () => {
  it.each([
    ['run', 2, 'go'],
    ['run', 3, 'complete'],
    ['pause', 2, 'hold'],
    ['pause', 3, 'complete'],
    ['stop', 2, 'stop'],
    ['stop', 3, 'stop'],
    ['cancel', 0, 'cancel'],
    ['cancel', 3, 'cancel'],
  ] as const)('with the wish %s after %i of 3 iterations: %s', (wish, position, turn) => {
    expect(at(wish, position).turn()).toBe(turn);
  });

  it('is queued until it is told otherwise', () => {
    expect(new RunProgress().live()).toEqual({
      state: 'queued',
      wish: 'run',
      stage: 'starting',
      position: 0,
      iterations: 0,
    });
  });
});
