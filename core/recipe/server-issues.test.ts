import { describe, expect, it } from 'vitest';
import type { Tree } from './merge.ts';
import { mergeTrees } from './merge.ts';
import { checkRecipe, parseRecipe } from './parse.ts';
import { runIssues } from './runnable.ts';
import { samplerEngine, samplingServer } from './sampling.ts';

const recipe = (rollout: Tree, more: Tree = {}) =>
  parseRecipe(
    mergeTrees(
      {
        model: { path: './m' },
        data: { train_files: 'rows.jsonl', train_batch_size: 8 },
        actor: { ppo_mini_batch_size: 8 },
        rollout: { n: 4, ...rollout },
      },
      more,
    ),
  );
const issues = (rollout: Tree, more: Tree = {}) =>
  runIssues(recipe(rollout, more)).map(({ path, message }) => `${path}: ${message}`);
const here = { name: 'vllm', url: 'http://127.0.0.1:8000' };

describe('a server that somebody runs and that samples', () => {
  it('is what jobs get, with the name of its key', () => {
    const given = recipe({ ...here, api_key: 'env:KEY', weights_dir: '/shared', timeout: 12 });
    expect(samplerEngine(given)).toBe('http');
    expect(samplingServer(given)).toEqual({
      api: 'vllm',
      url: here.url,
      apiKey: 'env:KEY',
      weightsFolder: '/shared',
      timeoutMs: 12_000,
    });
    expect([samplerEngine(recipe({})), samplingServer(recipe({}))]).toEqual(['native', undefined]);
  });

  it.each([
    [here, []],
    [{ name: 'sglang', url: 'http://localhost:30000/v1' }, []],
    [{ name: 'vllm', url: 'https://gpu.example:8000', weights_dir: '/nfs/weights' }, []],
    [{ name: 'vllm', url: 'http://gpu:8000' }, [/^rollout\.weights_dir: the server is another machine/]],
    [{ ...here, weights_dir: 'weights' }, [/^rollout\.weights_dir: .*the whole path/]],
    [{ ...here, url: 'http://secret@127.0.0.1:8000' }, [/^rollout\.url: it has a user name or a password/]],
    [{ ...here, url: 'gpu:8000' }, [/^rollout\.url: this is no address/]],
    [{ url: here.url }, [/^rollout\.name: .*what kind of server/]],
    [{ name: 'sglang' }, [/^rollout\.url: SGLang samples as a server that you start/]],
    [{ api_key: 'env:KEY' }, [/^rollout\.api_key: it is for a vLLM or SGLang server that you run/]],
  ])('with %j has these issues: %j', (rollout, expected) => {
    expect(issues(rollout)).toEqual(expected.map((pattern) => expect.stringMatching(pattern) as string));
  });

  it('is named without its login in the refusal', () => {
    const found = runIssues(recipe({ ...here, url: 'http://secret@127.0.0.1:8000' }));
    expect(found).toMatchObject([{ expected: 'the address alone: http://127.0.0.1:8000' }]);
    expect(JSON.stringify(found)).not.toContain('secret');
    expect(found[0]?.hint).toContain('rollout.api_key=env:NAME');
    const checked = checkRecipe({ rollout: { ...here, url: 'http://me:secret@127.0.0.1:8000' } });
    expect(JSON.stringify(checked)).not.toContain('me:secret');
    expect(JSON.stringify(checked)).toContain('rollout.api_key=env:NAME');
  });

  it('has its key by the name of a variable only', () => {
    expect(() => recipe({ ...here, api_key: 'plain' })).toThrow(/rollout\.api_key: looks like a secret/);
  });

  it('cannot repeat its samples, and gets no adapters', () => {
    expect(issues(here, { deterministic: true })).toEqual([expect.stringContaining('cannot be had again to the bit')]);
    expect(issues(here, { deterministic: 'replay' })).toEqual([]);
    expect(issues(here, { model: { lora_rank: 8 }, trainer: { engine: 'torch' } })).toEqual([
      expect.stringContaining('trains a low-rank adapter'),
    ]);
  });
});
