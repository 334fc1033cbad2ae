import { describe, expect, it } from 'vitest';
import { parseRecipe } from '../../core/recipe/index.ts';
import { exampleEngine } from '../../core/wire/examples.test-support.ts';
import { writeEnvironment } from '../../infra/engines/environment.ts';
import { temporaryHome } from '../../tests/servers.ts';
import { requireEngines, requireInstalled } from './engine-check.ts';

const recipe = (changes: object = {}) =>
  parseRecipe({
    name: 'toy',
    model: { path: './model' },
    data: { train_files: 'rows.jsonl' },
    reward: { scorer: 'last_integer' },
    ...changes,
  });
const torch = { ...exampleEngine, name: 'torch' };
const vllm = { ...exampleEngine, name: 'vllm', randomness: 'seeded' as const };

describe('the engines of a run', () => {
  it('are those of some workers, or of workers that may still come', () => {
    requireEngines(recipe(), { trainer: [exampleEngine], rollout: [vllm, exampleEngine] });
    requireEngines(recipe(), { trainer: [], rollout: [] });
    requireEngines(recipe({ kind: 'sft', reward: undefined }), { trainer: [exampleEngine], rollout: [vllm] });
  });

  it.each([
    [
      'trainer.engine',
      { trainer: [torch], rollout: [exampleEngine] },
      'no worker has the engine native; they have torch',
    ],
    ['rollout.name', { trainer: [exampleEngine], rollout: [vllm] }, 'no worker has the engine native; they have vllm'],
  ] as const)('are refused at the start when no worker has %s', (where, engines, message) => {
    expect(() => requireEngines(recipe(), engines)).toThrow(
      expect.objectContaining({ where, message: `${where}: ${message}`, hint: expect.stringContaining(`${where}=`) }),
    );
  });

  it('are installed on this machine where no worker is up', () => {
    const { home, remove } = temporaryHome();
    try {
      requireInstalled(recipe(), home);
      const asked = recipe({ trainer: { engine: 'torch' }, rollout: { name: 'vllm' } });
      const refused = (where: string, name: string) =>
        expect(() => requireInstalled(asked, home)).toThrow(
          expect.objectContaining({ where, hint: expect.stringContaining(`petrel engine install ${name},`) }),
        );
      refused('trainer.engine', 'torch');
      const versions = { torch: '2.11.0', transformers: '5.12.0', device: 'AVX2' };
      writeEnvironment(home, 'torch', 'cpu', { python: '/usr/bin/python3', device: 'cpu', versions });
      refused('rollout.name', 'vllm');
      requireInstalled(recipe({ kind: 'sft', reward: undefined, trainer: { engine: 'torch' } }), home);
      writeEnvironment(home, 'vllm', 'cuda', { python: '/usr/bin/python3', device: 'cuda', versions });
      requireInstalled(asked, home);
    } finally {
      remove();
    }
  });

  it('may ask a server, which every worker can that is not of an older petrel', () => {
    const asking = recipe({ rollout: { name: 'vllm', url: 'http://127.0.0.1:8000' } });
    const http = { ...exampleEngine, name: 'http', randomness: 'seeded' as const };
    requireEngines(asking, { trainer: [exampleEngine], rollout: [exampleEngine, http] });
    expect(() => requireEngines(asking, { trainer: [exampleEngine], rollout: [exampleEngine] })).toThrow(
      expect.objectContaining({ where: 'rollout.url', message: expect.stringContaining('an older petrel') }),
    );
  });

  it('must repeat a sample where a run promises its weights to the bit', () => {
    const asks = (deterministic: boolean | 'replay') => recipe({ deterministic, rollout: { name: 'vllm' } });
    const engines = { trainer: [exampleEngine], rollout: [vllm] };
    expect(() => requireEngines(asks(true), engines)).toThrow(
      expect.objectContaining({ where: 'rollout.name', message: expect.stringContaining('draws other random bits') }),
    );
    requireEngines(asks('replay'), engines);
    requireEngines(asks(false), engines);
    requireEngines(asks(true), { ...engines, rollout: [{ ...vllm, randomness: 'counter' }] });
  });
});
