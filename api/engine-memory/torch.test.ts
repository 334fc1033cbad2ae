import type { Division } from '../../core/division.ts';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { ownMemory } from '../../core/ports/engine-plans.ts';
import type { DevicePlan, ProcessWanted } from '../../core/ports/engine-plans.ts';
import { publishedModels } from '../../models/published-configs.test-support.ts';
import { sumOf } from './moments.ts';
import { torchPlans } from './torch.ts';

const gib = 2 ** 30;
const folders = mkdtempSync(join(tmpdir(), 'petrel-torch-plans-'));
afterAll(() => rmSync(folders, { recursive: true }));
for (const [name, { config }] of Object.entries(publishedModels)) {
  mkdirSync(join(folders, name));
  writeFileSync(join(folders, name, 'config.json'), JSON.stringify(config));
}

const plan = async (name: string, more: Partial<ProcessWanted> = {}): Promise<readonly DevicePlan[]> =>
  (await torchPlans.plan?.({
    model: { folder: join(folders, name), head: 'tokens' },
    compute: 'bf16',
    trained: 1,
    frozen: 0,
    ranks: 1,
    tokens: 1024,
    machineBytes: 1024 * gib,
    ...more,
  })) ?? [];

const onCards = { cardBytes: 80 * gib };
const card = async (name: string, more: Partial<ProcessWanted> = {}) =>
  (await plan(name, { ...onCards, ...more })).find(({ device }) => device === 'card 0')?.parts ?? {};

describe('memory of the torch engine', () => {
  it('is 16 bytes for each parameter that learns, divided over the ranks', async () => {
    for (const ranks of [1, 8]) {
      const { weights = 0, gradients = 0, moments = 0 } = await card('Qwen2.5-7B', { ranks });
      expect((weights + gradients + moments) * ranks).toBeCloseTo(16 * 7_615_616_512, 0);
    }
  });

  it('is half of that in bf16, also of frozen models', async () => {
    const of = async (division: Division) => {
      const {
        weights = 0,
        gradients = 0,
        moments = 0,
        reference = 0,
      } = await card('Qwen2.5-7B', {
        ...{ ranks: 8, frozen: 1, division },
      });
      return { learning: weights + gradients + moments, reference };
    };
    const [wide, narrow] = [await of({}), await of({ state: 'bf16' })];
    expect(narrow.learning * 8).toBeCloseTo(8 * 7_615_616_512, 0);
    // Its embedding and head stay gathered in bf16.
    expect((wide.reference - narrow.reference) * 8).toBeCloseTo(2 * 7_615_616_512, 0);
  });

  it('has a card for each rank', async () => {
    const devices = await plan('Qwen2.5-7B', { ...onCards, ranks: 4 });
    expect(devices.map(({ device }) => device)).toEqual(['card 0', 'card 1', 'card 2', 'card 3', ownMemory]);
    const [processor, ...others] = await plan('Qwen2.5-7B', { ranks: 4 });
    expect([processor?.device, others]).toEqual([ownMemory, []]);
  });

  it('has in the machine’s memory the tensors that are loaded, or the state that is written, whichever is more', async () => {
    const host = async (more: Partial<ProcessWanted>) =>
      (await plan('Qwen2.5-7B', { ...onCards, ranks: 4, ...more })).at(-1)?.parts ?? {};
    const [trained, frozen] = [await host({}), await host({ trained: 0 })];
    expect([trained['loading'], trained['snapshot']]).toEqual([undefined, 12 * 7_615_616_512]);
    // Each rank reads the embedding, which is the largest tensor.
    expect([frozen['loading'], frozen['snapshot']]).toEqual([4 * 4 * 152_064 * 3584, undefined]);
  });

  it('gathers of a layer what the ranks that share its matrices or experts compute with', async () => {
    const gathered = async (name: string, division: Division) =>
      (await card(name, { ranks: 8, tokens: 64, division }))['gathered'] ?? 0;
    // Experts of so many that the moment of a layer is the fullest.
    const [whole, matrices, experts] = [
      await gathered('DeepSeek-V3', {}),
      await gathered('DeepSeek-V3', { tensor: 8 }),
      await gathered('DeepSeek-V3', { experts: 8 }),
    ];
    expect(whole).toBeGreaterThan(4 * matrices);
    expect(whole).toBeGreaterThan(4 * experts);
    expect(experts).toBeGreaterThan(matrices);
  });

  it('keeps the activations of the rank’s share of the tokens', async () => {
    const activations = async (division: Division) =>
      (await card('Qwen2.5-7B', { ranks: 8, tokens: 65_536, division }))['activations'] ?? 0;
    const [whole, shared] = [await activations({}), await activations({ sequence: 8 })];
    expect(whole / shared).toBeCloseTo(8, 1);
  });

  it('of an adapter is the frozen base and what the adapter learns', async () => {
    const adapter = { rank: 16, targets: 'all-linear' };
    const { weights = 0, gradients = 0, moments = 0 } = await card('Qwen2.5-7B', { adapter });
    // Rank 16 beside q, k, v, o, gate, up and down of 28 layers.
    const elements = 28 * 16 * (2 * (3584 + 3584) + 2 * (3584 + 512) + 3 * (3584 + 18944));
    expect(weights).toBe(4 * (7_615_616_512 + elements));
    expect([gradients, moments]).toEqual([4 * elements, 8 * elements]);
  });

  it('has a layer of a mixture gathered as a whole', async () => {
    const { gathered = 0 } = await card('DeepSeek-V3', { ranks: 256 });
    // 256 experts of three matrices, twice, in bf16.
    expect(gathered).toBeGreaterThan(2 * 2 * 256 * 3 * 7168 * 2048);
  });

  it('never gets more with more ranks, and never less with more tokens, models or values', async () => {
    const seed = 11;
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...Object.keys(publishedModels)),
        fc.integer({ min: 1, max: 64 }),
        fc.integer({ min: 1, max: 32768 }),
        async (name, ranks, tokens) => {
          const bytes = async (more: Partial<ProcessWanted>) => sumOf(await card(name, { ranks, tokens, ...more }));
          const own = await bytes({});
          expect(await bytes({ ranks: ranks + 1 })).toBeLessThanOrEqual(own);
          expect(await bytes({ tokens: tokens + 1 })).toBeGreaterThanOrEqual(own);
          expect(await bytes({ frozen: 1 })).toBeGreaterThan(own);
          expect(await bytes({ trained: 2 })).toBeGreaterThan(own);
        },
      ),
      { seed, numRuns: 50 },
    );
  });

  it.each([
    [{ layer_types: ['full_attention', 'conv'] }, /layer 1 of llama is of type conv/],
    [{ layer_types: ['linear_attention', 'full_attention'] }, /layer 0 .* linear_attention/],
    [{ layers_block_type: ['attention', 'mamba'] }, /layer 1 .* linear_attention/],
    [{ model_type: 'mamba2' }, /mamba2 has layers that can carry a state/],
    [{ model_type: 'qwen3_next' }, /qwen3_next has layers/],
    [{}, undefined],
    [{ layer_types: ['sliding_attention', 'full_attention', 'chunked_attention'] }, undefined],
    // All layers of a hybrid family may attend.
    [{ model_type: 'granitemoehybrid', layer_types: ['attention', 'attention'] }, undefined],
  ])('refuses layers that carry a state from token to token: %j', async (more, refused) => {
    const folder = join(folders, 'layers');
    const sizes = { num_hidden_layers: 2, vocab_size: 64, max_position_embeddings: 64 };
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'config.json'), JSON.stringify({ model_type: 'llama', ...sizes, ...more }));
    const reading = torchPlans.readModel({ folder, head: 'tokens' });
    await (refused === undefined ? expect(reading).resolves.toBeDefined() : expect(reading).rejects.toThrow(refused));
  });

  it('is not planned for a decoder whose config has other keys', async () => {
    const folder = join(folders, 'gpt2');
    mkdirSync(folder);
    writeFileSync(join(folder, 'config.json'), JSON.stringify({ model_type: 'gpt2', n_embd: 8 }));
    expect(await plan('gpt2')).toEqual([]);
  });
});
