/** Values that change on the way from verl to petrel. */
import { nearestRunName } from '../../../../core/ids.ts';
import { showValue } from '../../../../core/recipe/show-value.ts';
import { withoutHoles } from '../shell/holes.ts';

/** The rest of the input, by path without the wrapper. */
export type ValueOf = (path: string) => unknown;

export type Converted =
  | { readonly type: 'value'; readonly value: unknown; readonly note?: string }
  /** The same in another form. */
  | { readonly type: 'same'; readonly value: unknown; readonly note: string }
  /** The key is left: nothing is written. */
  | { readonly type: 'left'; readonly note: string }
  /** It cannot be met. */
  | { readonly type: 'none'; readonly note: string };

type Conversion = (value: unknown, valueOf: ValueOf, path: string) => Converted;

const value = (of: unknown, note?: string): Converted => ({
  type: 'value',
  value: of,
  ...(note !== undefined && { note }),
});
const left = (note: string): Converted => ({ type: 'left', note });

export const CONVERSIONS = {
  /** The parts that are not known, such as the date, are left out: a run's id has its time. */
  runName: (name) => {
    const known = withoutHoles(String(name));
    const run = nearestRunName(known);
    if (run === undefined) return left('it has no letter or digit');
    return { type: 'same', value: run, note: 'written as petrel writes names; a run’s id has the date and time' };
  },
  loggers: (loggers) => {
    const names = [loggers].flat().map(String);
    const kept: readonly string[] = names.filter((name) => name === 'console' || name === 'file');
    const dropped = names.filter((name) => !kept.includes(name));
    if (dropped.length === 0) return value(kept);
    return value(
      kept.length > 0 ? kept : ['console'],
      `no tracker yet (${dropped.join(', ')}); metrics are in the store`,
    );
  },
  /** `${data.max_response_length}` and the like are resolved before, so only a different number matters. */
  unlessReference: (length, valueOf, path) => {
    const key = path === 'rollout.prompt_length' ? 'data.max_prompt_length' : 'data.max_response_length';
    const given = valueOf(key);
    return given === undefined || given === length ? value(length) : left(`${key} is ${String(given)}, which decides`);
  },
  /** verl’s trainer ignores the estimator then. */
  spo: (on) => (on === true ? value('spo') : left('the estimator decides')),
  /** Written also when it is on, so that `petrel plan` refuses what a run cannot do. */
  severalTurns: (on) => (on === true ? value(true) : left('a response has one turn')),
  /** The level, which in verl 0.6 has an effect with `algorithm.rollout_is` only. */
  appliedLevel: (level, valueOf) =>
    valueOf('algorithm.rollout_is') === true ? value(level) : left('verl only measures the weights then'),
  /** verl 2025-08 to 2025-10: min(exp(old − rollout), cap), by which the loss vanilla alone was multiplied. */
  truncation: (cap, valueOf) => {
    const loss = valueOf('actor.policy_loss.loss_mode') ?? 'vanilla';
    if (typeof cap !== 'number') return { type: 'none', note: 'it is not a number' };
    if (cap < 0) return left('it is off');
    if (loss !== 'vanilla') return left(`verl applied it to the loss vanilla only, and the loss is ${String(loss)}`);
    return { type: 'same', value: cap, note: 'verl’s name from 2025-08 to 2025-10; rollout_is is token' };
  },
  /** -1: the steps of the run. */
  stepsOfRun: (steps) => (steps === -1 ? left('as long as the run') : value(steps)),
  onlyTrue: (on) =>
    on === true
      ? value(true)
      : left('the recipe counts tokens, with the same result up to rounding; it could count sequences, too'),
  tokenLimit: (limit, valueOf) => {
    const usesIt =
      valueOf('actor.use_dynamic_bsz') === true || valueOf('actor.ppo_micro_batch_size_per_gpu') === undefined;
    return usesIt ? value(limit) : left('verl does not use it without actor.use_dynamic_bsz');
  },
  referenceLimit: (limit, valueOf) => {
    const dynamic = valueOf('ref.log_prob_use_dynamic_bsz') ?? valueOf('actor.use_dynamic_bsz');
    return dynamic === true ? value(limit) : left('verl does not use it without ref.log_prob_use_dynamic_bsz');
  },
  microBatch: (sequences, valueOf) => microBatch(sequences, valueOf, valueOf('actor.use_dynamic_bsz') === true),
  criticMicroBatch: (sequences, valueOf) =>
    microBatch(sequences, valueOf, (valueOf('critic.use_dynamic_bsz') ?? valueOf('actor.use_dynamic_bsz')) === true),
  asActor: (given, valueOf, path) => {
    const key = path.replace(/^critic\./, 'actor.');
    const own = valueOf(key);
    if (own === given) return left(`as ${key}`);
    return own === undefined ? left(`${key} decides`) : { type: 'none', note: `${key} is ${String(own)}` };
  },
  asModel: (path, valueOf) => {
    const own = valueOf('model.path');
    return own === path
      ? left('the same model')
      : { type: 'none', note: own === undefined ? 'model.path is not known' : `model.path is ${String(own)}` };
  },
  asPolicyModel: (given, valueOf, path) => {
    const key = path.replace(/^critic\./, '');
    const own = valueOf(key);
    if (showValue(own) === showValue(given)) return left(`as ${key}`);
    return { type: 'none', note: `${key} is ${own === undefined ? 'not set' : showValue(own)}` };
  },
  /** Servers of other engines become vLLM, which petrel starts by itself. */
  sampler: (name) =>
    name === 'vllm' || name === 'hf'
      ? value(name)
      : value('vllm', 'only vLLM and transformers are started by petrel itself'),
  /** A model is divided over all GPUs of a machine: verl’s -1. */
  shardSize: (size, valueOf) => {
    const gpus = valueOf('trainer.n_gpus_per_node') ?? defaultGpus;
    if (size === -1 || size === gpus) return left('the GPUs of a machine');
    return typeof size === 'number' && typeof gpus === 'number' && size < gpus
      ? left('the model is divided over all GPUs of the machine, and has no replicas')
      : { type: 'none', note: 'the model is divided over the GPUs of one machine' };
  },
  /** Only what is on is written: another key of the script may ask for it, too. */
  offload: (on) => (on === true ? value(true) : left('it is not asked for')),
  sharedSize: (size, valueOf) => sharedSize(size, valueOf),
  sharedLayers: (size, valueOf, path) => {
    const adapter = ['model.lora_rank', 'model.lora.rank'].map(valueOf).some((rank) => Number(rank) > 0);
    if (adapter) return { type: 'none', note: 'the layers of a model with an adapter are not divided so' };
    const tensor = valueOf('actor.megatron.tensor_model_parallel_size') ?? 1;
    if (path.includes('expert') && typeof size === 'number' && size % Number(tensor) !== 0)
      return { type: 'none', note: `it is no multiple of tensor_model_parallel_size ${String(tensor)}` };
    return sharedSize(size, valueOf);
  },
  /** Several GPUs have a share of each sequence. */
  sharedMicroBatch: (sequences, valueOf) => {
    const converted = microBatch(sequences, valueOf, valueOf('actor.use_dynamic_bsz') === true);
    const shares = ulyssesOf(valueOf);
    return converted.type === 'value' ? value(Math.ceil(Number(converted.value) / shares)) : converted;
  },
  /** vLLM draws other samples when it is asked again; what is learned from them is repeated. */
  determinism: (on) => (on === true ? value('replay') : left('it is not asked for')),
  dtype: (dtype) => {
    const known = DTYPES[String(dtype)];
    return known === undefined ? { type: 'none', note: 'petrel computes in fp32 or bf16' } : value(known);
  },
  minLrRatio: (rate, valueOf, path) => {
    const peak = valueOf(path.replace(/\.[^.]*$/, '.lr'));
    if (typeof rate !== 'number' || typeof peak !== 'number' || !(peak > 0))
      return { type: 'none', note: 'the peak rate is not given' };
    return { type: 'same', value: rate / peak, note: 'as a share of the peak rate' };
  },
} as const satisfies Readonly<Record<string, Conversion>>;

export type ConversionName = keyof typeof CONVERSIONS;

const DTYPES: Readonly<Record<string, string>> = {
  bfloat16: 'bf16',
  bf16: 'bf16',
  float32: 'fp32',
  fp32: 'fp32',
  auto: 'auto',
};

/** verl's defaults of the lengths, and of the GPUs of a machine. */
const defaultLength = 512;
export const defaultGpus = 8;

/** The longest sequence that the input allows. */
export function longestSequence(valueOf: ValueOf): number {
  const lengths = ['data.max_prompt_length', 'data.max_response_length'].map(valueOf);
  return lengths.reduce<number>((sum, length) => sum + (typeof length === 'number' ? length : defaultLength), 0);
}

/** Sizes that the recipe's check would refuse are not written. */
function sharedSize(size: unknown, valueOf: ValueOf): Converted {
  const gpus = valueOf('trainer.n_gpus_per_node');
  if (typeof gpus !== 'number') return { type: 'none', note: 'the number of GPUs of a machine is not given' };
  if (typeof size !== 'number' || gpus % size !== 0)
    return { type: 'none', note: `it does not divide the ${gpus} GPUs of a machine` };
  return value(size);
}

const ulyssesKeys = ['actor', 'actor.fsdp_config', 'actor.fsdp'].map((at) => `${at}.ulysses_sequence_parallel_size`);

/** How many GPUs have a share of a sequence. */
function ulyssesOf(valueOf: ValueOf): number {
  const sizes = [...ulyssesKeys, 'actor.veomni.ulysses_parallel_size'].map(valueOf);
  const size = sizes.find((one) => typeof one === 'number') ?? 1;
  return sharedSize(size, valueOf).type === 'value' ? Number(size) : 1;
}

function microBatch(sequences: unknown, valueOf: ValueOf, dynamic: boolean): Converted {
  if (dynamic) return left('verl does not use it with use_dynamic_bsz');
  if (typeof sequences !== 'number' || !(sequences > 0)) return { type: 'none', note: 'it is not a number' };
  return value(Math.ceil(sequences) * longestSequence(valueOf));
}
