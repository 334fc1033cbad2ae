import { describe, expect, it } from 'vitest';
import { RunProgress } from './run-state.ts';

function at(desired: RunProgress['desired'], position: number): RunProgress {
  return Object.assign(new RunProgress(), { desired, position, iterations: 3 });
}

describe('at the boundary of an iteration a run', () => {
  it.each([
    ['run', 2, 'go'],
    ['run', 3, 'complete'],
    ['pause', 2, 'pause'],
    ['pause', 3, 'complete'],
    ['stop', 2, 'stop'],
    ['stop', 3, 'stop'],
    ['cancel', 0, 'cancel'],
    ['cancel', 3, 'cancel'],
  ] as const)('with desired state %s, after %i of 3 iterations: %s', (desired, position, turn) => {
    expect(at(desired, position).turn()).toBe(turn);
  });

  it('is queued at first', () => {
    expect(new RunProgress().live()).toEqual({
      state: 'queued',
      wish: 'run',
      stage: 'starting',
      position: 0,
      iterations: 0,
    });
  });
});
