/** Runs of an older petrel version can be listed, verified, resumed and forked by this one. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { firstQuick } from '../first-quick.ts';
import { KeptStore } from './kept-store.ts';
import { PetrelUser } from './petrel.ts';

const states = {
  'grpo-killed': 'running',
  'sft-killed': 'running',
  'grpo-cancelled': 'cancelled',
  'grpo-stopped': 'stopped',
  'grpo-paused': 'paused',
  'grpo-failed': 'failed',
  weekly: 'completed',
  'grpo-trimmed': 'completed',
  'grpo-redone': 'completed',
  'grpo-fork': 'completed',
  'sft-completed': 'completed',
  'plain-completed': 'completed',
  'grpo-completed': 'completed',
};
const names = Object.keys(states);
const each = names.map((name) => [name] as [string]);

/** The environment variable that `grpo-failed` needs. */
class KeyedUser extends PetrelUser {
  override env(more: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
    return super.env({ KEPT_KEY: 'there', ...more });
  }
}

describe('the store of 5ad3543', () => {
  const user = new KeyedUser();
  let store: KeptStore;
  beforeAll(() => {
    store = new KeptStore(user, '5ad3543');
  });
  afterAll(() => user.remove());

  /** Runs a command that must succeed. */
  async function petrel(...words: readonly string[]): Promise<void> {
    const ran = await user.petrel(...words);
    expect(ran.code, `petrel ${words.join(' ')}\n${ran.out}\n${ran.err}`).toBe(0);
  }

  describe('before any process of petrel runs', () => {
    it('is listed', async () => {
      const listed = await user.petrel('ls', '--all', '--json');
      const runs = listed.json<{ name: string; state: string }[]>();
      expect(Object.fromEntries(runs.map(({ name, state }) => [name, state]))).toEqual(states);
    });

    it('shows its schedule', async () => {
      const shown = await user.petrel('schedule', 'show', 'weekly', '--json');
      expect(shown.json()).toMatchObject({ state: 'paused', firings: [{ outcome: 'started', state: 'completed' }] });
    });

    firstQuick(each)('%s: status, checkpoints, metrics and samples are shown', async (name) => {
      expect(await store.status(name)).toMatchObject({ name, state: states[name as keyof typeof states] });
      await petrel('ckpt', 'ls', name);
      if (name === 'grpo-failed') return; // it has no iterations
      await petrel('ckpt', 'verify', name);
      await petrel('metrics', name);
      await petrel('samples', name);
    });

    firstQuick(each)('%s: the ledger is verified', (name) => store.verify(name));
  });

  describe('once petrel is up', () => {
    beforeAll(() => petrel('up'));

    it('the killed run continues to the same weights', async () => {
      const { code, err } = await user.petrel('resume', 'grpo-killed');
      expect([0, 5], err).toContain(code); // 5: the running stack may have continued it already
      await store.reaches('grpo-killed', 'completed');
      expect(store.states('grpo-killed')).toEqual(store.states('grpo-completed'));
    });

    it.each(['grpo-paused', 'grpo-stopped', 'grpo-failed'])(
      '%s is resumed to the same weights',
      { tags: ['long'] },
      async (name) => {
        await petrel('resume', name, '--wait');
        expect(store.states(name)).toEqual(store.states('grpo-completed'));
      },
    );

    it('the cancelled run is resumed from an iteration to the same weights', { tags: ['long'] }, async () => {
      await petrel('resume', 'grpo-cancelled', '--from', '2', '--accept', '--wait');
      expect(store.states('grpo-cancelled')).toEqual(store.states('grpo-completed'));
    });

    it('the killed run of another stack is taken over', { tags: ['long'] }, async () => {
      await petrel('resume', 'sft-killed', '--accept', '--wait');
      expect(await store.status('sft-killed')).toMatchObject({ state: 'completed', iteration: 6, owner: 'kept-a' });
    });

    it('a fork repeats the numbers of the existing fork', async () => {
      await petrel(
        ...['fork', 'grpo-completed', '--from', '3', 'actor.optim.lr=0.001', '--name', 'grpo-again', '--wait'],
      );
      expect(store.states('grpo-again')).toEqual(store.states('grpo-fork'));
    });

    it('its runs and their forks keep their hash of blocks in every term', () => {
      for (const name of [...names, 'grpo-again'])
        expect(new Set(store.blockHashes(name))).toEqual(new Set([undefined]));
    });

    it.each(['grpo-redone', 'grpo-trimmed', 'plain-completed', 'sft-completed'])(
      '%s is resumed with more iterations',
      { tags: ['long'] },
      async (name) => {
        await petrel('resume', name, 'trainer.total_training_steps=8', '--accept', '--wait');
        expect(await store.status(name)).toMatchObject({ state: 'completed', iteration: 8, term: expect.any(Number) });
      },
    );

    it.each(['grpo-killed', 'grpo-again'])('%s: the ledger is verified', (name) => store.verify(name));
    firstQuick(each)('%s: the ledger is still verified', (name) => store.verify(name));
  });
});

describe('the store of 86f3496, records of format 2, with a value model beside the policy', { tags: ['long'] }, () => {
  const user = new PetrelUser();
  const made = ['grpo-completed', 'grpo-stopped', 'grpo-killed'];
  let store: KeptStore;
  beforeAll(() => {
    store = new KeptStore(user, '86f3496-critic');
  });
  afterAll(() => user.remove());

  it.each(made)('%s: status and checkpoints are shown, and the ledger is verified', async (name) => {
    expect(await store.status(name)).toMatchObject({ name });
    for (const words of [
      ['ckpt', 'verify', name],
      ['metrics', name],
      ['samples', name],
    ])
      expect(await user.petrel(...words)).toMatchObject({ code: 0 });
    await store.verify(name);
  });

  it('its killed and its stopped run continue to the same weights', async () => {
    expect(await user.petrel('up')).toMatchObject({ code: 0 });
    const { code, err } = await user.petrel('resume', 'grpo-killed');
    expect([0, 5], err).toContain(code); // 5: the running stack may have continued it already
    expect(await user.petrel('resume', 'grpo-stopped', '--wait')).toMatchObject({ code: 0 });
    await store.reaches('grpo-killed', 'completed');
    for (const name of ['grpo-killed', 'grpo-stopped']) {
      expect(store.states(name)).toEqual(store.states('grpo-completed'));
      await store.verify(name);
    }
  });

  it('a run is forked', async () => {
    const forked = await user.petrel(...['fork', 'grpo-completed', '--from', '3', '--name', 'again', '--wait']);
    expect(forked, forked.err).toMatchObject({ code: 0 });
    await store.verify('again');
  });
});
