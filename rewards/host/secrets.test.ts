import { describe, expect, it } from 'vitest';
import { withSecrets } from './secrets.ts';

describe('secrets of a scorer', () => {
  it('replace their references at any depth, and nothing else', () => {
    const settings = {
      key: 'env:KEY',
      list: ['env:KEY', 'environment'],
      deep: { key: 'env:KEY' },
      n: 3,
      text: 'see env:KEY',
    };
    expect(withSecrets(settings, { KEY: 'value' })).toEqual({
      key: 'value',
      list: ['value', 'environment'],
      deep: { key: 'value' },
      n: 3,
      text: 'see env:KEY',
    });
  });

  it('are named in the error when the worker does not have them', () => {
    expect(() => withSecrets({ key: 'env:KEY' }, {})).toThrow(/env:KEY.*no variable KEY/);
  });
});
