import { z } from 'zod';
import { count, fraction, key, section, text } from './key.ts';
import { endpointSection } from './endpoint.ts';
import { primeSection } from './prime.ts';

const customSection = section('Your own scorer, in TypeScript, JavaScript or Python.', {
  path: key(text.nullable(), null, { doc: 'The module; null: a built-in scorer.', change: 'ask', pointsTo: 'file' }),
  requirements: key(text.nullable(), null, {
    doc: 'The packages of a scorer in Python: a list with versions and hashes, as pip reads it; null: those that are installed.',
    change: 'ask',
    pointsTo: 'file',
  }),
  name: key(text, 'compute_score', {
    doc: 'Name of the function in the module; with the default name, computeScore is tried too.',
    change: 'ask',
  }),
  deterministic: key(z.boolean(), false, {
    doc: 'Declares that the result depends only on the arguments; deterministic runs need this.',
    change: 'ask',
  }),
});

const rewardModelSection = section('A model that scores responses, in the process that trains.', {
  enable: key(z.boolean(), false, { doc: 'Score with a reward model.', change: 'fixed' }),
  path: key(text.nullable(), null, {
    doc: 'Folder or hub name of the reward model: a sequence classifier with num_labels 1 and the tokenizer of the policy, as safetensors; or a folder with model.onnx.',
    change: 'fixed',
    pointsTo: 'model',
    verl: 'reward.reward_model.model_path',
  }),
  weight: key(z.number(), 1, { doc: 'Weight of its score in the reward.', change: 'ask' }),
  scorer_weight: key(z.number(), 0, {
    doc: 'Weight of the score of the scorer beside it; 0: it is only measured.',
    change: 'ask',
  }),
});

const sandboxSection = section(
  'A service that runs programs of the scorer code, in place of the sandbox of this machine.',
  {
    url: key(text.nullable(), null, { doc: 'Address of a Sandbox Fusion service; null: none.', change: 'free' }),
    max_concurrent: key(count, 64, { doc: 'Maximum number of requests at a time.', unit: 'requests', change: 'free' }),
    memory_limit_mb: key(count, 1024, { doc: 'Memory limit of one request.', unit: 'MiB', change: 'ask' }),
  },
);

const managerSection = section('How scores become rewards.', {
  name: key(z.enum(['naive', 'batch', 'prime', 'dapo', 'gdpo', 'rate_limited', 'remote']).nullable(), null, {
    doc: 'naive: the score is the reward; batch: naive, and a call of your scorer gets lists, with all responses to a prompt; prime: naive, as scorers always work in parallel and with a time limit; dapo: with the penalty of reward.overlong_buffer; gdpo: several scores by name, algorithm.gdpo_reward_keys; rate_limited: naive, and without reward.endpoint.url its limits hold for calls of the scorer; remote: naive, because scorers always have processes of their own. null: gdpo for the estimator gdpo, otherwise naive.',
    change: 'ask',
  }),
});

const overlongSection = section('A penalty for responses that are nearly too long (reward_manager.name: dapo).', {
  enable: key(z.boolean(), false, { doc: 'Add the penalty to the score.', change: 'ask' }),
  len: key(count.nullable(), null, {
    doc: 'The penalty grows in the last part of data.max_response_length, which has so many tokens.',
    unit: 'tokens',
    change: 'ask',
    verl: 'reward.reward_kwargs.overlong_buffer_cfg.len',
  }),
  penalty_factor: key(z.number().nonnegative(), 1, {
    doc: 'The penalty of a response of data.max_response_length tokens.',
    change: 'ask',
    verl: 'reward.reward_kwargs.overlong_buffer_cfg.penalty_factor',
  }),
});

/** `reward`: how responses are scored, in processes of their own. */
export const rewardSection = section('How responses are scored. Scorers run in processes of their own.', {
  scorer: key(text.nullable(), null, {
    doc: 'A built-in scorer (gsm8k, exact …) for all rows; null: the column data.reward_fn_key selects it; none: a reward model scores alone.',
    change: 'ask',
  }),
  reward_kwargs: key(z.record(z.string(), z.json()), {}, { doc: 'Settings passed to the scorer.', change: 'ask' }),
  num_workers: key(count, 1, { doc: 'Scorer processes per reward worker.', unit: 'processes', change: 'free' }),
  timeout: key(z.number().positive(), 10, {
    doc: 'Time limit of one call; after it the sample counts as failed.',
    unit: 's',
    change: 'ask',
  }),
  memory_limit_mb: key(count, 1024, { doc: 'Memory limit of a scorer process.', unit: 'MiB', change: 'ask' }),
  sandbox: key(z.boolean(), false, {
    doc: 'Run your own scorer in a sandbox: without network, and without files other than its interpreter.',
    change: 'ask',
  }),
  max_failed_fraction: key(fraction, 0.1, {
    doc: 'The run pauses when a larger share of the samples of an iteration failed.',
    change: 'free',
  }),
  custom_reward_function: customSection,
  reward_manager: managerSection,
  overlong_buffer: overlongSection,
  reward_model: rewardModelSection,
  prime: primeSection,
  sandbox_fusion: sandboxSection,
  endpoint: endpointSection,
});
