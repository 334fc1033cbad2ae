import type { Tree } from '../../../../core/recipe/index.ts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { recipeKey, recipeSections } from '../../../../core/recipe/keys.ts';
import { checkRecipe } from '../../../../core/recipe/parse.ts';
import { chooseEngines } from './engine-choice.ts';
import { Entries } from './entries.ts';
import { findRule } from './find-rule.ts';
import { importEntries, type ImportOptions } from './map-entries.ts';
import type { ImportResult } from './outcome.ts';
import { overridesIn } from './overrides-file.ts';
import { RULES } from './rules.ts';
import { GPU_RULES, TORCH_RULES, VLLM_GPU_RULES, VLLM_RULES } from './torch-rules.ts';

const given = ['data.train_files=a.jsonl', 'actor_rollout_ref.model.path=org/m', 'algorithm.adv_estimator=gae'];

function imported(overrides: readonly string[], options: Partial<ImportOptions> = {}): ImportResult {
  const entries = new Entries();
  for (const text of [...given, ...overrides]) entries.override({ text });
  return importEntries(entries, { kind: 'rl', env: new Map(), ...options });
}
const nameOf = (override: string) => override.replace(/^[+~]*/, '').replace(/=.*$/s, '');
const outcomeOf = (override: string, ...others: string[]) =>
  imported([...others, override]).keys.find(({ verl }) => verl === nameOf(override));
/** The same with `--engine torch`. */
const onGpus = (override: string, ...others: string[]) =>
  imported([...others, override], { engine: 'torch' }).keys.find(({ verl }) => verl === nameOf(override));

describe.each([
  ['native', RULES, 'native'],
  ['torch', TORCH_RULES, 'torch'],
  ['vLLM', VLLM_RULES, 'torch'],
  ['GPUs', GPU_RULES, 'torch'],
  ['vLLM’s GPUs', VLLM_GPU_RULES, 'torch'],
] as const)('the table of %s', (_, table, engine) => {
  it('names keys that petrel has', () => {
    const known = (path: string) =>
      recipeKey(path) !== undefined || recipeSections.some((section) => section.path === path);
    const written = table.flatMap(({ verl, to }) => {
      const choices = /\(([^()]*)\)/.exec(verl)?.[1]?.split('|') ?? [''];
      return to === undefined ? [] : choices.map((choice) => to.replace('$1', choice));
    });
    expect(written.map((to) => to.replace(/\.\*\*$/, '')).filter((to) => !known(to))).toEqual([]);
  });

  it('says in each row what becomes of the key', () => {
    const empty = table.filter(({ to, how, none, met }) => [to, how, none, met].every((one) => one === undefined));
    expect(empty).toEqual([]);
  });

  it('has no row that is never reached', () => {
    const unreached = table.filter(({ verl }) => {
      const path = verl.replaceAll(/\(([^()]*)\)/g, (_, choices: string) => choices.split('|').at(-1) ?? '');
      const example = path.replaceAll('**', 'x.y').replaceAll('*', 'z');
      return (
        findRule(
          example,
          chooseEngines(engine, () => undefined),
        )?.verl !== verl
      );
    });
    expect(unreached.map(({ verl }) => verl)).toEqual([]);
  });
});

describe('a key of verl', () => {
  it('that limits the calls of a scorer limits them for the whole run', () => {
    for (const place of ['reward', 'reward_model']) {
      const manager = `${place}.reward_manager${place === 'reward' ? '.name' : ''}=rate_limited`;
      expect(outcomeOf(`${place}.max_rpm=60`, manager)).toMatchObject({
        petrel: 'reward.endpoint.max_rpm',
        written: 60,
      });
      const text = imported([manager, `${place}.max_concurrent=4`, `${place}.timeout=30`]).keys;
      expect(text.map(({ petrel, written }) => [petrel, written])).toEqual(
        expect.arrayContaining([
          ['reward.reward_manager.name', 'rate_limited'],
          ['reward.endpoint.max_concurrent', 4],
          ['reward.timeout', 30],
        ]),
      );
    }
    for (const name of ['remote', 'batch'])
      expect(outcomeOf(`reward.reward_manager.name=${name}`)).toMatchObject({ outcome: 'same', written: name });
  });

  it('that petrel has loses its wrapper', () => {
    expect(outcomeOf('actor_rollout_ref.actor.optim.lr=3e-6')).toMatchObject({
      outcome: 'same',
      petrel: 'actor.optim.lr',
      written: 3e-6,
    });
  });

  it('with another name, or a name of earlier versions, is moved', () => {
    expect(outcomeOf('trainer.experiment_name=Qwen_8B')).toMatchObject({ outcome: 'moved', written: 'qwen-8b' });
    expect(outcomeOf('custom_reward_function.path=s.py')).toMatchObject({
      petrel: 'reward.custom_reward_function.path',
      written: 's.py',
    });
    expect(outcomeOf('critic.optim.min_lr=1e-7', 'critic.optim.lr=1e-6')?.written).toBeCloseTo(0.1);
  });

  it('that asks for what petrel always does needs nothing', () => {
    expect(outcomeOf('actor_rollout_ref.model.use_remove_padding=True')?.outcome).toBe('met');
    expect(outcomeOf('actor_rollout_ref.rollout.tensor_model_parallel_size=1')?.outcome).toBe('met');
    expect(outcomeOf('actor_rollout_ref.rollout.tensor_model_parallel_size=2')).toMatchObject({
      outcome: 'none',
      reason: 'parallel',
    });
  });

  it('of PRIME’s choice of prompts keeps its name and value', () => {
    const words = ['data.filter_accuracy=True', 'data.accuracy_lower_bound=0.1', 'data.accuracy_upper_bound=0.9'];
    const { tree, problems } = imported([...words, 'data.oversample_factor=4.0', 'data.filter_truncate=True']);
    expect(tree).toMatchObject({
      data: {
        filter_accuracy: true,
        accuracy_lower_bound: 0.1,
        accuracy_upper_bound: 0.9,
        oversample_factor: 4,
        filter_truncate: true,
      },
    });
    expect(problems).toEqual([]);
  });

  it('of a sampler in Python is left out, with what petrel has', () => {
    expect(outcomeOf('data.sampler.class_path=pkg://mine')).toMatchObject({ outcome: 'none', reason: 'sampler' });
  });

  it('of single-stream policy optimisation turns into its estimator', () => {
    const spo = ['algorithm.adv_estimator=grpo', 'trainer.spo.enable=True', 'trainer.spo.rho.clip_lower=0.9'];
    expect(imported([...spo, 'trainer.spo.offline_values=v.json']).tree).toMatchObject({
      algorithm: { adv_estimator: 'spo', spo: { rho: { clip_lower: 0.9 } } },
    });
    expect(outcomeOf('trainer.spo.offline_values=v.json')).toMatchObject({ outcome: 'none', reason: 'trackers' });
    expect(imported(['algorithm.adv_estimator=rloo', 'trainer.spo.enable=False']).tree).toMatchObject({
      algorithm: { adv_estimator: 'rloo' },
    });
  });

  it('for the size of a forward pass in sequences becomes a limit in tokens, unless verl ignores it', () => {
    const micro = 'actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4';
    const lengths = ['data.max_prompt_length=1000', 'data.max_response_length=3000'];
    const limit = { actor: { ppo_max_token_len_per_gpu: 16_000 } };
    expect(imported([...lengths, micro]).tree).toMatchObject(limit);
    expect(imported([...lengths, micro, 'actor_rollout_ref.actor.use_dynamic_bsz=True']).tree).not.toMatchObject(limit);
  });

  it('never leaves a limit that is below the longest sequence', () => {
    const { tree, problems } = imported(['data.max_response_length=32768']);
    expect(tree).toMatchObject({ actor: { ppo_max_token_len_per_gpu: 33_280 } });
    expect(problems).toEqual([]);
  });

  it('with a value that no run can use yet is written, and is a problem', () => {
    const { keys, tree, problems } = imported(['actor_rollout_ref.rollout.n=2', 'algorithm.adv_estimator=gigpo']);
    expect(keys.at(-1)).toMatchObject({ outcome: 'later', written: 'gigpo' });
    expect(tree).toMatchObject({ algorithm: { adv_estimator: 'gigpo' } });
    expect(problems.map(({ path }) => path)).toEqual(['algorithm.adv_estimator']);
  });

  it('with a value that petrel’s schema refuses is left out', () => {
    const { keys, tree } = imported(['algorithm.gamma=fast', 'actor_rollout_ref.rollout.n=0']);
    expect(keys.slice(-2).map(({ outcome }) => outcome)).toEqual(['refused', 'refused']);
    expect(checkRecipe(tree).ok).toBe(true);
  });

  it('that nobody knows is reported, with the key that is probably meant', () => {
    expect(outcomeOf('actor_rollout_ref.actor.clip_raito=0.1')).toMatchObject({
      outcome: 'unknown',
      note: 'is actor.clip_ratio meant?',
    });
  });

  it('that looks like a secret is neither written nor repeated', () => {
    const token = `hf_${'a'.repeat(30)}`;
    const result = imported([`+trainer.hub_token=${token}`, `actor_rollout_ref.model.path=${token}`]);
    expect(JSON.stringify(result)).not.toContain(token);
  });
});

describe('the engines of a recipe', () => {
  const vllm = 'actor_rollout_ref.rollout.name=vllm';
  const adapter = 'actor_rollout_ref.model.lora_rank=8';
  const gpus = 'trainer.n_gpus_per_node=8';

  it('are petrel’s defaults, which run anywhere, whatever the script of GPUs says', () => {
    const { tree, engines } = imported([vllm, gpus, 'actor_rollout_ref.actor.strategy=fsdp2']);
    expect(engines).toMatchObject({ trainer: 'native', sampler: 'native' });
    expect(tree).not.toHaveProperty('trainer');
    expect(tree).not.toHaveProperty('rollout');
  });

  it('are torch and vLLM on the GPUs of one machine when they are asked for', () => {
    const { tree, problems } = imported([vllm, gpus, 'actor_rollout_ref.rollout.n=4'], { engine: 'torch' });
    expect(tree).toMatchObject({ trainer: { engine: 'torch', fsdp_size: 8 }, rollout: { name: 'vllm' } });
    expect(problems).toEqual([]);
  });

  it('are torch for an adapter, in one process, unless native is asked for', () => {
    const { tree, problems, engines } = imported([adapter, gpus, vllm]);
    expect(tree).toMatchObject({ trainer: { engine: 'torch' }, rollout: { name: 'vllm' }, model: { lora_rank: 8 } });
    expect(tree).not.toHaveProperty('trainer.fsdp_size');
    expect(engines.why).toContain('adapter');
    expect(problems).toEqual([]);
    const native = imported([adapter], { engine: 'native' });
    expect(native.tree).not.toHaveProperty('trainer');
    expect(native.problems.map(({ path }) => path)).toEqual(['trainer.engine', 'rollout.name']);
  });

  it('are torch for an adapter whose folder is not known', () => {
    const { tree } = imported(['actor_rollout_ref.model.lora_adapter_path=${oc.env:ADAPTER}']);
    expect(tree).toMatchObject({ trainer: { engine: 'torch' } });
  });

  it('have no sampler where none samples', () => {
    expect(imported([adapter], { kind: 'sft' }).tree).not.toHaveProperty('rollout');
  });

  it('sample with vLLM for servers that petrel does not start, and with transformers where verl does', () => {
    for (const [name, sampler] of [
      ['sglang', 'vllm'],
      ['trtllm', 'vllm'],
      ['hf', 'hf'],
    ])
      expect(imported([`actor_rollout_ref.rollout.name=${name}`], { engine: 'torch' }).tree).toMatchObject({
        rollout: { name: sampler },
      });
  });

  it('say what verl’s default number of GPUs would be', () => {
    const { defaults } = imported([], { engine: 'torch' });
    expect(defaults).toContainEqual(expect.objectContaining({ petrel: 'trainer.fsdp_size', verlDefault: 8 }));
    expect(imported([gpus], { engine: 'torch' }).defaults.map(({ petrel }) => petrel)).not.toContain(
      'trainer.fsdp_size',
    );
  });
});

describe('a key of verl’s engines', () => {
  const fsdp = 'actor_rollout_ref.actor.fsdp_config';

  it('that asks for host memory is met by the native engine, and by all models of torch', () => {
    expect(outcomeOf(`${fsdp}.param_offload=True`)?.outcome).toBe('met');
    const state = onGpus(`${fsdp}.param_offload=True`);
    expect([state?.outcome, state?.petrel, Object.hasOwn(state ?? {}, 'written')]).toEqual([
      'differs',
      'trainer.cpu_offload',
      false,
    ]);
    expect(onGpus(`${fsdp}.offload_policy=True`)).toMatchObject({ petrel: 'trainer.cpu_offload', written: true });
    for (const keys of [
      [`${fsdp}.offload_policy=True`, `${fsdp}.optimizer_offload=False`],
      [`${fsdp}.optimizer_offload=False`, `${fsdp}.offload_policy=True`],
    ])
      expect(imported(keys, { engine: 'torch' }).tree).toMatchObject({ trainer: { cpu_offload: true } });
    expect(onGpus('actor_rollout_ref.ref.fsdp_config.param_offload=True')).toMatchObject({
      outcome: 'none',
      reason: 'offload',
    });
    expect(onGpus(`${fsdp}.param_offload=False`)?.outcome).toBe('met');
  });

  it('of FSDP is one number of processes, on one machine', () => {
    const eight = 'trainer.n_gpus_per_node=8';
    const size = (value: number) => onGpus(`${fsdp}.fsdp_size=${value}`, eight)?.outcome;
    expect([-1, 8, 4].map(size)).toEqual(['differs', 'differs', 'differs']);
    expect(size(16)).toBe('none');
    expect(onGpus('trainer.nnodes=2')).toMatchObject({ outcome: 'none', reason: 'machines' });
    expect(onGpus('actor_rollout_ref.actor.strategy=fsdp')).toMatchObject({ outcome: 'met', petrel: 'trainer.engine' });
    expect(onGpus('actor_rollout_ref.actor.strategy=megatron')?.outcome).toBe('differs');
  });

  it('of the sampler’s GPUs divides vLLM’s model', () => {
    expect(onGpus('actor_rollout_ref.rollout.tensor_model_parallel_size=2')).toMatchObject({
      petrel: 'rollout.tensor_model_parallel_size',
      written: 2,
    });
    expect(onGpus('actor_rollout_ref.rollout.data_parallel_size=4')?.outcome).toBe('differs');
    // Without --engine torch an adapter brings torch and vLLM, but not the GPUs.
    expect(
      outcomeOf('actor_rollout_ref.rollout.tensor_model_parallel_size=2', 'actor_rollout_ref.model.lora_rank=8'),
    ).toMatchObject({ outcome: 'none', reason: 'parallel' });
  });

  it('that splits a model in another way has no counterpart, and says so', () => {
    for (const [key, reason] of [
      ['rollout.pipeline_model_parallel_size', 'samplerLayout'],
      ['actor.megatron.pipeline_model_parallel_size', 'parallel'],
      ['actor.megatron.context_parallel_size', 'parallel'],
    ])
      expect(onGpus(`actor_rollout_ref.${key}=2`)).toMatchObject({ outcome: 'none', reason });
    expect(outcomeOf('actor_rollout_ref.actor.ulysses_sequence_parallel_size=2')).toMatchObject({
      outcome: 'none',
      reason: 'parallel',
    });
  });

  it.each([
    ['ulysses_sequence_parallel_size', 'ulysses_sequence_parallel_size'],
    ['fsdp_config.ulysses_sequence_parallel_size', 'ulysses_sequence_parallel_size'],
    ['megatron.tensor_model_parallel_size', 'tensor_model_parallel_size'],
    ['megatron.expert_model_parallel_size', 'expert_model_parallel_size'],
  ])('%s divides what the processes of torch compute', (key, name) => {
    const eight = 'trainer.n_gpus_per_node=8';
    const ofActor = onGpus(`actor_rollout_ref.actor.${key}=2`, eight);
    expect(ofActor).toMatchObject({ petrel: `trainer.${name}`, written: 2 });
    expect(onGpus(`actor_rollout_ref.ref.${key}=2`)?.outcome).toBe('differs');
    expect(onGpus(`critic.${key}=1`)?.outcome).toBe('met');
    // What the recipe's check would refuse is not written.
    expect(onGpus(`actor_rollout_ref.actor.${key}=3`, eight)?.outcome).toBe('none');
    expect(onGpus(`actor_rollout_ref.actor.${key}=2`)?.outcome).toBe('none');
    if (!key.startsWith('megatron')) return;
    const lora = 'actor_rollout_ref.model.lora.rank=16';
    expect(onGpus(`actor_rollout_ref.actor.${key}=2`, eight, lora)?.outcome).toBe('none');
  });

  it('Ulysses shares the sequences of a micro-batch among the GPUs', () => {
    const given = ['trainer.n_gpus_per_node=8', 'data.max_prompt_length=1024', 'data.max_response_length=31744'];
    const ulysses = 'actor_rollout_ref.actor.ulysses_sequence_parallel_size=2';
    const limit = (...keys: readonly string[]) =>
      (imported([...given, ...keys], { engine: 'torch' }).tree['actor'] as Tree | undefined)?.[
        'ppo_max_token_len_per_gpu'
      ];
    expect([limit(), limit(ulysses)]).toEqual([32768, undefined]);
    const four = 'actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4';
    expect([limit(four), limit(four, ulysses)]).toEqual([4 * 32768, 2 * 32768]);
  });

  it('of precision chooses the arithmetic, or is told that sums stay in fp32', () => {
    expect(onGpus(`${fsdp}.mixed_precision.param_dtype=bf16`)).toMatchObject({
      petrel: 'model.compute_dtype',
      written: 'bf16',
    });
    expect(onGpus(`${fsdp}.model_dtype=bfloat16`)?.outcome).toBe('differs');
    expect(onGpus(`${fsdp}.full_determinism=True`)).toMatchObject({ petrel: 'deterministic', written: 'replay' });
  });

  it('of vLLM counts where vLLM samples', () => {
    const eager = 'actor_rollout_ref.rollout.enforce_eager=False';
    expect(onGpus(eager)?.outcome).toBe('met');
    expect(outcomeOf(eager)).toMatchObject({ outcome: 'none', reason: 'server' });
    expect(onGpus('actor_rollout_ref.rollout.gpu_memory_utilization=0.6')?.note).toContain('40 %');
    expect(onGpus('actor_rollout_ref.rollout.free_cache_engine=True')).toMatchObject({ reason: 'colocation' });
  });

  it('of a critic’s adapter is met by the policy’s form', () => {
    const critic = 'critic.model.lora_rank=8';
    expect(onGpus(critic, 'actor_rollout_ref.model.lora_rank=8')?.outcome).toBe('differs');
    expect(onGpus(critic, 'actor_rollout_ref.model.lora_rank=16')?.outcome).toBe('none');
  });
});

describe('truncated importance sampling', () => {
  const cap = 'actor_rollout_ref.actor.tis_imp_ratio_cap';

  it('of verl 2025-08 to 2025-10 is rollout correction with weights of tokens', () => {
    const { tree, keys, losses, problems } = imported([
      `${cap}=2.5`,
      'actor_rollout_ref.rollout.calculate_log_probs=True',
    ]);
    expect(tree).toMatchObject({
      algorithm: { rollout_correction: { rollout_is: 'token', rollout_is_threshold: 2.5 } },
    });
    expect(keys.find(({ verl }) => verl.endsWith(cap))).toMatchObject({
      outcome: 'moved',
      note: expect.stringContaining('2025-08 to 2025-10'),
    });
    expect(losses).toEqual([]);
    expect(problems.filter(({ path }) => path.startsWith('algorithm'))).toEqual([]);
  });

  it.each([[[`${cap}=-1`]], [[`${cap}=2`, 'actor_rollout_ref.actor.policy_loss.loss_mode=gspo']]])(
    'that verl did not apply is not written: %s',
    (words) => {
      const { tree, losses } = imported(words);
      expect(tree).not.toHaveProperty('algorithm.rollout_correction');
      expect(losses).toEqual([]);
    },
  );

  it('without a number is left out, and named first', () => {
    expect(imported([`${cap}=high`]).losses).toMatchObject([{ verl: cap }]);
  });
});

describe('keys that choose devices, servers and machinery', () => {
  it.each([
    'rollout.rollout_world_size=4',
    'rollout.enable_expert_parallel=True',
    'rollout.data_parallelism=2',
    'rollout.trust_remote_code=True',
    'actor.trust_remote_code=True',
    'actor.mindspeed.strategy=mindspeed_megatron',
    'actor.mindspeed.mcore_kwargs.moe_grouped_gemm=True',
    'rollout.num_gpus_per_replica=2',
    'rollout.visible_devices=0',
    'actor.new_engine.nccl_timeout_s=5',
    'rollout.full_determinism=True',
    'actor.entropy_from_logits_chunk_size=2048',
    'actor.optim.muon_momentum=0.9',
    'actor.optim.exp_avg_dtype=fp32',
    'actor.qat.group_size=16',
  ])('do not change what is learned: %s', (word) => {
    expect(imported([`+actor_rollout_ref.${word}`]).losses).toEqual([]);
  });

  it.each(['actor.qat.enable=True', 'actor.sampled_kl_cap=2', 'actor.dtype=float16', 'actor.optim.exp_avg_dtype=bf16'])(
    'are not those that do: %s',
    (word) => expect(imported([`+actor_rollout_ref.${word}`]).losses).toHaveLength(1),
  );
});

it('the name that an unknown key begins is the one that is meant', () => {
  const hint = (word: string) => outcomeOf(`actor_rollout_ref.actor.${word}`)?.note;
  expect(hint('clip_ratio_hi=0.3')).toBe('is actor.clip_ratio_high meant?');
  expect(hint('clip_ratio_hgh=0.3')).toBe('is actor.clip_ratio_high meant?');
  expect(hint('clip_ratio_lo=0.3')).toBe('is actor.clip_ratio_low meant?');
  expect(hint('clip_rati=0.3')).toBe('is actor.clip_ratio meant?');
});

describe('what the input does not set', () => {
  it('has verl’s default where it decides what is learned', () => {
    const entries = new Entries();
    entries.override({ text: 'data.train_files=a.jsonl' });
    const { tree, defaults } = importEntries(entries, { kind: 'rl', env: new Map() });
    expect(tree).toMatchObject({ algorithm: { adv_estimator: 'gae' } });
    expect(defaults.map(({ petrel }) => petrel)).toContain('trainer.save_freq');
  });
});

describe('references', () => {
  it('to keys and variables are resolved', () => {
    const result = imported(
      ['actor_rollout_ref.actor.ppo_mini_batch_size=${data.train_batch_size}', 'data.train_batch_size=${oc.env:B,64}'],
      { env: new Map([['B', '32']]) },
    );
    expect(result.tree).toMatchObject({ actor: { ppo_mini_batch_size: 32 }, data: { train_batch_size: 32 } });
  });

  it('in a circle, or to keys that are not set, are reported', () => {
    expect(outcomeOf('algorithm.gamma=${algorithm.lam}', 'algorithm.lam=${algorithm.gamma}')).toMatchObject({
      outcome: 'unreadable',
    });
    expect(outcomeOf('algorithm.gamma=${nothing.here}')?.note).toContain('nothing.here');
  });
});

describe('a file of overrides', () => {
  it('may have several on a line, quotes of a shell or of Hydra, comments and continued lines', () => {
    const text = `# first\na.b=1 +c.d='x y' \\\n\ne.f=["a", "b"]  # why\n~g.h\n`;
    expect(overridesIn(text).map((word) => word.text)).toEqual(['a.b=1', '+c.d=x y', 'e.f=["a", "b"]', '~g.h']);
  });
});

it('any overrides give a report and never an error (seed 7)', () => {
  const word = fc.oneof(
    fc.string(),
    fc
      .tuple(fc.constantFrom('a.b', 'data.train_files', '+actor_rollout_ref.rollout.n', '~trainer', '++x'), fc.string())
      .map(([name, value]) => `${name}=${value}`),
    fc.constantFrom('a=[[[[', 'a={b:{c:', `a=${'['.repeat(300)}`, '__proto__.x=1', 'constructor.y={__proto__:1}'),
  );
  fc.assert(
    fc.property(fc.array(word, { maxLength: 8 }), (words) => {
      const { keys } = imported(words);
      expect(keys.length).toBeGreaterThan(0);
    }),
    { seed: 7, numRuns: 150 },
  );
});
