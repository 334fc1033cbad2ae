import { describe, expect, test, vi } from 'vitest';
import { UnfitError } from '../core/errors.ts';
import type { JobMessage } from '../core/wire/messages.ts';
import { jobNeeds, missedNeed, type NeedPorts } from './needs.ts';

const ports = { cache: '/nowhere', openStore: async () => Promise.reject(new Error('none')), engine: undefined };
const job = (scorer: unknown) => ({ store: 's', runId: 'r', input: { scorer } }) as unknown as JobMessage;
const namesOf = (scorer: unknown) => jobNeeds(job(scorer), ports as NeedPorts).map(({ name }) => name);
const packages = 'the Python packages of scorers';

describe('a scoring job', () => {
  test('needs the Python packages when its scorer is in Python, or when rows choose theirs', () => {
    expect(namesOf({ type: 'builtin', name: 'prime_math', revision: '1' })).toContain(packages);
    expect(namesOf({ type: 'builtin', revision: '1' })).toContain(packages);
    expect(namesOf({ type: 'builtin', name: 'gsm8k', revision: '1' })).not.toContain(packages);
    expect(namesOf({ type: 'module', module: 'm' })).not.toContain(packages);
    expect(namesOf(undefined)).not.toContain(packages);
  });

  test('is refused for missing packages at once, or after the first job whose rows need them', async () => {
    vi.stubEnv('PETREL_HOME', '/nowhere');
    const need = (scorer: unknown) =>
      missedNeed(new UnfitError('NoScorerPackages', 'none'), job(scorer), ports as NeedPorts);
    await expect(need({ type: 'builtin', name: 'geo3k' })?.check()).rejects.toThrow(UnfitError);
    const chosen = need({ type: 'builtin' });
    await chosen?.check();
    await expect(chosen?.checkAgain?.()).rejects.toThrow(/the scorer of some rows needs Python packages/);
    vi.unstubAllEnvs();
  });
});
