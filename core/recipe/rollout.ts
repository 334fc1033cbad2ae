import { z } from 'zod';
import { count, countOrZero, fraction, key, section, text } from './key.ts';

const temperature = z.number().nonnegative();
const topK = z.int().min(-1);
const topP = z.number().gt(0).max(1);

const multiTurnSection = section('Multi-turn conversations with tools and environments.', {
  enable: key(z.boolean(), false, { doc: 'Allow more than one turn per sample.', change: 'ask' }),
});

/** Sampling of the validation. */
const valKwargsSection = section('Sampling of the validation.', {
  temperature: key(temperature, 0, { doc: '0: greedy.', change: 'ask' }),
  top_k: key(topK, -1, { doc: 'Sample among the k likeliest tokens; -1 or 0: off.', change: 'ask' }),
  top_p: key(topP, 1, { doc: 'Sample among the likeliest tokens of this mass; 1: off.', change: 'ask' }),
  n: key(count, 1, { doc: 'Responses per validation prompt.', unit: 'responses', change: 'ask' }),
  do_sample: key(z.boolean(), false, { doc: 'false: greedy, at any temperature.', change: 'ask' }),
});

/** `rollout`: how responses are sampled. */
export const rolloutSection = section('How responses are sampled.', {
  name: key(z.enum(['native', 'onnx', 'hf', 'vllm', 'sglang']), 'native', {
    doc: 'The engine that generates; vllm: petrel engine install vllm; hf: transformers’ own, slow. With rollout.url: the kind of server.',
    change: 'ask',
  }),
  url: key(text.nullable(), null, {
    doc: 'Address of a server of vLLM or SGLang that somebody else runs, which generates in place of the workers; null: none.',
    change: 'free',
  }),
  api_key: key(text.nullable(), null, {
    doc: 'The key of the server, as env:NAME: the value of the variable NAME of the rollout workers.',
    change: 'free',
  }),
  weights_dir: key(text.nullable(), null, {
    doc: 'Folder for new weights that the rollout workers can write, and the server at rollout.url can read under the same path; null: one in PETREL_HOME, for a server on the same machine.',
    change: 'free',
  }),
  timeout: key(z.number().positive(), 300, {
    doc: 'The server at rollout.url is taken for dead after this time without a sign of it.',
    unit: 's',
    change: 'free',
  }),
  tensor_model_parallel_size: key(count, 1, {
    doc: 'GPUs over which vLLM divides a copy of the model; a rollout worker has a copy on every so many of its GPUs.',
    unit: 'GPUs',
    change: 'free',
  }),
  mode: key(z.enum(['sync', 'colocate_async', 'separate_async']), 'sync', {
    doc: 'sync: every response of an iteration is sampled with the policy of the iteration before.',
    change: 'ask',
    verl: 'trainer.v1.trainer_mode',
  }),
  max_staleness: key(countOrZero, 1, {
    doc: 'Asynchronous modes: maximum number of policy versions between sampling and training.',
    unit: 'policy versions',
    change: 'ask',
    verl: 'trainer.v1.sampler.max_off_policy_threshold',
  }),
  n: key(count, 1, {
    doc: 'Responses per prompt. They form the group of grpo, which needs 2 or more.',
    unit: 'responses',
    change: 'ask',
  }),
  do_sample: key(z.boolean(), true, { doc: 'false: greedy.', change: 'ask' }),
  temperature: key(temperature, 1, {
    doc: 'Logits are divided by it, in sampling and in training; 0: greedy.',
    change: 'ask',
  }),
  top_k: key(topK, -1, { doc: 'Sample among the k likeliest tokens; -1 or 0: off.', change: 'ask' }),
  top_p: key(topP, 1, { doc: 'Sample among the likeliest tokens of this mass; 1: off.', change: 'ask' }),
  min_p: key(fraction, 0, {
    doc: 'Drop tokens whose probability is below this share of the highest one; 0: off.',
    change: 'ask',
  }),
  repetition_penalty: key(z.number().positive(), 1, {
    doc: 'Reduces the logits of tokens that occurred before, by this factor; 1: off.',
    change: 'ask',
  }),
  stop: key(z.array(text), [], {
    doc: 'Texts that end a response, in addition to the end-of-text tokens.',
    change: 'ask',
  }),
  max_num_seqs: key(count, 256, {
    doc: 'Samples that one worker decodes in parallel.',
    unit: 'samples',
    change: 'free',
  }),
  val_kwargs: valKwargsSection,
  multi_turn: multiTurnSection,
});
