import { describe, expect, it } from 'vitest';
import { checkpointIn, folderName, keys, numberIn, pinnedBy, runOf } from './keys.ts';

const digest = 'ab'.repeat(32);

describe('the names of objects', () => {
  it('can be parsed again', () => {
    const name = (key: string) => key.slice(key.lastIndexOf('/') + 1);
    expect(checkpointIn(keys.checkpoint('r', 12, digest))).toEqual({ iteration: 12, stateDigest: digest });
    expect(checkpointIn(name(keys.checkpoint('r', 0, digest)))).toEqual({ iteration: 0, stateDigest: digest });
    expect(numberIn(name(keys.status('r', 7)))).toBe(7);
    expect(numberIn('7/')).toBe(7);
    expect(pinnedBy(name(keys.pin('r', 'fork')))).toBe('fork');
    expect(runOf(keys.batch('r', 1, 2))).toBe('r');
    expect(folderName('abc/')).toBe('abc');
  });

  it('of another form are not parsed', () => {
    for (const other of ['x', `12-${digest}`, `12-${digest}.json.tmp`, `-1-${digest}.json`, keys.weights('r', digest)])
      expect(checkpointIn(other)).toBeUndefined();
    for (const other of ['', 'x7.json', '7.txt', '-7']) expect(numberIn(other)).toBeUndefined();
    expect(runOf('models/m/config.json')).toBeUndefined();
  });
});
