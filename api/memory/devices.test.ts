import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { parseRecipe } from '../../core/recipe/index.ts';
import type { Tree } from '../../core/recipe/index.ts';
import { publishedModels } from '../../models/published-configs.test-support.ts';
import { parseMachine } from './cards.ts';
import { machineUse, tooLittle } from './devices.ts';

const folders = mkdtempSync(join(tmpdir(), 'petrel-devices-'));
afterAll(() => rmSync(folders, { recursive: true }));
for (const [name, { config }] of Object.entries(publishedModels)) {
  mkdirSync(join(folders, name));
  writeFileSync(join(folders, name, 'config.json'), JSON.stringify(config));
}

async function planned(name: string, machine: string, more: Tree = {}) {
  const path = join(folders, name);
  const recipe = parseRecipe({
    name: 'sized',
    model: { path },
    data: { train_files: 'rows.jsonl', train_batch_size: 64 },
    actor: { ppo_mini_batch_size: 64 },
    reward: { scorer: 'last_integer' },
    ...more,
    rollout: { name: 'vllm', n: 8, ...(more['rollout'] as Tree | undefined) },
    trainer: { engine: 'torch', ...(more['trainer'] as Tree | undefined) },
  });
  const use = await machineUse(recipe, { model: { folder: path, head: 'tokens' } }, parseMachine(machine));
  if (use === undefined) throw new Error('torch plans this model');
  return { use, refusal: tooLittle(use, recipe) };
}

/** The overrides of a hint as sections of a recipe. */
const sectionsOf = (overrides: readonly string[]): Tree => {
  const sections: Record<string, Tree> = {};
  for (const one of overrides) {
    const [, section = '', key = '', value] = /^(\w+)\.(\w+)=(\d+)$/.exec(one) ?? [];
    sections[section] = { ...sections[section], [key]: Number(value) };
  }
  return sections;
};

describe('a machine that is asked about', () => {
  it('says of each device what it holds, a sampler on every card', async () => {
    const { use } = await planned('Qwen2.5-7B', '8xH200/2TiB', { trainer: { fsdp_size: 8 } });
    expect(use.devices.map(({ device, count }) => [device, count])).toEqual([
      ['card 0', 8],
      ['memory', 1],
    ]);
    expect(use.devices.map(({ processes }) => processes.map(({ role }) => role))).toEqual([
      ['trainer', 'rollout'],
      ['trainer', 'rollout'],
    ]);
  });

  it.each([
    ['Qwen2.5-7B', '8xH100'],
    ['Qwen2.5-32B', '8xH200'],
    ['Qwen3-30B-A3B', '8xH100'],
  ])('with too little memory for %s is refused (%s) with what would do, and that does', async (name, machine) => {
    const { use, refusal } = await planned(name, machine);
    expect(use.fits).toBe(false);
    const { remedy } = use.sharding ?? {};
    if (remedy === undefined) throw new Error(`no machine is known for ${name}: ${refusal?.hint}`);
    for (const one of remedy.overrides) expect(refusal?.hint).toContain(one);
    const again = await planned(name, remedy.machine, sectionsOf(remedy.overrides));
    expect([again.use.fits, again.refusal]).toEqual([true, undefined]);
  });

  it('with too few cards of the right kind is refused with how many would do', async () => {
    const short = { actor: { ppo_max_token_len_per_gpu: 1024, ppo_mini_batch_size: 64 } };
    const { use, refusal } = await planned('Qwen2.5-7B', '1xH200', short);
    const { fsdpSize } = use.sharding ?? {};
    if (fsdpSize === null || fsdpSize === undefined) throw new Error('more cards are enough for a short pack');
    expect(refusal?.hint).toBe(`it fits with --machine ${fsdpSize}xH200 trainer.fsdp_size=${fsdpSize}`);
    const enough = await planned('Qwen2.5-7B', `${fsdpSize}xH200`, { ...short, trainer: { fsdp_size: fsdpSize } });
    expect(enough.use.fits).toBe(true);
    const less = { ...short, trainer: { fsdp_size: fsdpSize - 1 } };
    expect((await planned('Qwen2.5-7B', `${fsdpSize}xH200`, less)).use.fits).toBe(false);
  });

  it('refuses a mixture of 671 billion parameters with the cards that its state fills', async () => {
    const { use, refusal } = await planned('DeepSeek-V3', '8xH100');
    // 16 bytes for each parameter, on cards of which 72 GiB may be used.
    expect(use.sharding?.cardsOfState).toBe(Math.ceil((16 * 671.03e9) / (72 * 2 ** 30)));
    expect(refusal?.hint).toMatch(
      /gradients and moments fill 139 such cards, the sampler's weights 18, of which it gets 1/,
    );
    expect(refusal?.detail).toMatch(/^card 0 would hold/);
  });

  it('trains a mixture of 671 billion parameters where its experts are divided', async () => {
    const server = {
      rollout: { url: 'http://10.0.0.7:8000' },
      actor: { ppo_max_token_len_per_gpu: 1536, ppo_mini_batch_size: 64 },
    };
    const whole = await planned('DeepSeek-V3', '256xH100', { ...server, trainer: { fsdp_size: 256 } });
    expect(whole.refusal?.detail).toMatch(/^card 0 would hold/);
    const trainer = { fsdp_size: 256, expert_model_parallel_size: 64 };
    expect((await planned('DeepSeek-V3', '256xH100', { ...server, trainer })).refusal).toBeUndefined();
  });

  it.each([4, 6])('of %i cards is advised a number of ranks that the recipe’s division divides', async (cards) => {
    const trainer = { fsdp_size: 8, ulysses_sequence_parallel_size: 4 };
    const { use, refusal } = await planned('Qwen2.5-7B', `${cards}xH100`, { trainer });
    expect(refusal).toBeDefined();
    const { overrides = [] } = use.sharding?.remedy ?? {};
    const ranks = (sectionsOf(overrides)['trainer'] as Tree | undefined)?.['fsdp_size'];
    expect(Number(ranks) % 4).toBe(0);
  });

  it('needs few cards where the state lies in the machine’s own memory', async () => {
    const small = { actor: { ppo_max_token_len_per_gpu: 2048, ppo_mini_batch_size: 64 } };
    expect((await planned('Qwen2.5-7B', '1xH100', small)).use.fits).toBe(false);
    const { use } = await planned('Qwen2.5-7B', '1xH100', { ...small, trainer: { cpu_offload: true } });
    expect(use.fits).toBe(true);
    const [card, memory] = use.devices.map(({ processes }) => processes.find(({ role }) => role === 'trainer')?.parts);
    expect([card?.['moments'], memory?.['moments']]).toEqual([undefined, 8 * 7_615_616_512]);
  });

  it('fits 70 billion parameters where the sampler’s model is divided', async () => {
    const { refusal } = await planned('Llama-3.1-70B', '8xH200', { trainer: { fsdp_size: 8 } });
    expect(refusal?.hint).toMatch(/^it fits with --machine \d+xH200 .*rollout.tensor_model_parallel_size=[248]$/);
  });

  it('divides the weights and caches of a sampler over the cards of one model', async () => {
    const parts = async (size: number) => {
      const { use } = await planned('Qwen2.5-7B', '8xH200/2TiB', { rollout: { tensor_model_parallel_size: size } });
      return use.devices[0]?.processes.find(({ role }) => role === 'rollout')?.parts ?? {};
    };
    const [whole, half] = [await parts(1), await parts(2)];
    expect(half['weights']).toBe((whole['weights'] ?? 0) / 2);
    // Half of a token’s bytes for twice the samples.
    expect((half['kvCache'] ?? 0) / (whole['kvCache'] ?? 0)).toBeCloseTo(1, 1);
  });

  it('lacks the cards that trainer.fsdp_size asks for', async () => {
    const { refusal } = await planned('Qwen2.5-7B', '4xB200', { trainer: { fsdp_size: 8 } });
    expect(refusal?.detail).toBe('trainer.fsdp_size=8 needs 8 cards, the machine has 4');
  });

  it('lacks the cards over which the sampler’s model is divided', async () => {
    const { refusal } = await planned('Qwen2.5-7B', '1xB200', { rollout: { tensor_model_parallel_size: 2 } });
    expect(refusal?.detail).toBe('rollout.tensor_model_parallel_size=2 needs 2 cards, the machine has 1');
    expect(refusal?.hint).toMatch(/^it fits with (?:.* )?rollout\.tensor_model_parallel_size=1$/);
  });

  it('lacks memory of its own, where that is stated: a checkpoint is written from a copy', async () => {
    const small = { actor: { ppo_max_token_len_per_gpu: 1024, ppo_mini_batch_size: 64 }, trainer: { fsdp_size: 8 } };
    expect((await planned('Qwen2.5-7B', '8xB200', small)).refusal).toBeUndefined();
    const { refusal } = await planned('Qwen2.5-7B', '8xB200/96GiB', small);
    expect(refusal?.detail).toMatch(/own memory would hold .*it has 96 GiB: a checkpoint is written from a copy/);
  });

  it('has no sampler where a server samples: rollout.url', async () => {
    const server = { rollout: { url: 'http://10.0.0.7:8000' }, trainer: { fsdp_size: 2 } };
    const { use } = await planned('Qwen2.5-7B', '2xH200/2TiB', server);
    expect(
      use.devices.map(({ device, count, processes }) => [device, count, processes.map(({ role }) => role)]),
    ).toEqual([
      ['card 0', 2, ['trainer']],
      ['memory', 1, ['trainer']],
    ]);
    const pools = { train: { roles: ['trainer', 'reward'], workers: 1 }, sample: { roles: ['rollout'], workers: 1 } };
    const apart = await planned('Qwen2.5-7B', '2xH200/2TiB', { ...server, fleet: { pools } });
    const asking = apart.use.devices.at(-1)?.processes.find(({ role }) => role === 'rollout');
    expect([apart.use.devices.length, Object.keys(asking?.parts ?? {})]).toEqual([2, ['process']]);
  });

  it.each([
    ['8xB200/64GiB', 8, /^it fits with --machine 8xB200\/\d+GiB$/],
    ['1xH100/64GiB', 8, /^it fits with --machine \dxH100\/\d+GiB trainer.fsdp_size=\d$/],
  ])(
    'with too little memory of its own (%s) is refused with what would do, and that does',
    async (name, ranks, hint) => {
      const small = { actor: { ppo_max_token_len_per_gpu: 1024, ppo_mini_batch_size: 64 } };
      const { use, refusal } = await planned('Qwen2.5-7B', name, { ...small, trainer: { fsdp_size: ranks } });
      expect(refusal?.hint).toMatch(hint);
      const { machine = '', overrides = [] } = use.sharding?.remedy ?? {};
      const trainer = { fsdp_size: ranks, ...(sectionsOf(overrides)['trainer'] as Tree | undefined) };
      expect((await planned('Qwen2.5-7B', machine, { ...small, trainer })).refusal).toBeUndefined();
    },
  );

  it('uses no card where the engines compute on processors', async () => {
    const native = { trainer: { engine: 'native' }, rollout: { name: 'native' } };
    const { use } = await planned('Qwen2.5-7B', '8xH100', native);
    expect(use.devices.map(({ device }) => device)).toEqual(['memory']);
    expect(use.sharding).toBeUndefined();
  });
});
