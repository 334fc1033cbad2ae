import { z } from 'zod';
import { count, key, moduleOrNull, requiredKey, section, text } from './key.ts';

/** A batch record names every prompt of its iteration in about 100 bytes, and is written as one object of a few MiB. */
const mostPrompts = 65_536;

const files = z.union([text, z.array(text).min(1)]);

const curriculumSection = section(
  'Pass over prompts that are solved, or too hard yet, for some passes over the rows.',
  {
    enable: key(z.boolean(), false, { doc: 'Pass over such prompts.', change: 'ask' }),
    metric: key(text.nullable(), null, {
      doc: 'The number that decides: score, acc or another one that the scorer returns; null: score.',
      change: 'ask',
    }),
    solved: key(z.number().nullable(), 1, {
      doc: 'A prompt is passed over when its responses had at least this mean the last time; null: no upper bound.',
      change: 'ask',
    }),
    unsolved: key(z.number().nullable(), null, {
      doc: 'A prompt is passed over when its responses had at most this mean the last time; null: no lower bound.',
      change: 'ask',
    }),
    revisit: key(count, 4, {
      doc: 'It is sampled again after so many passes.',
      unit: 'passes',
      change: 'ask',
    }),
  },
);

/** `data`: rows, their columns, lengths and batch sizes. Batch sizes count prompts, as in verl. */
export const dataSection = section('The rows to train and validate on. Batch sizes count prompts.', {
  train_files: requiredKey(files, {
    doc: 'File of rows (JSONL, a JSON array, either in gzip, or Parquet), or a list of them.',
    change: 'fixed',
    pointsTo: 'file',
  }),
  train_file_weights: key(z.array(z.number().positive()).min(1).nullable(), null, {
    doc: 'How often a pass takes the rows of each of data.train_files, a number for each file (2: every row twice; 0.5: every second row); null: once.',
    change: 'fixed',
  }),
  val_files: key(files.nullable(), null, {
    doc: 'Rows of the validation; null: no validation.',
    change: 'ask',
    pointsTo: 'file',
  }),
  format: key(z.enum(['verl', 'gsm8k']), 'verl', {
    doc: "Form of the rows. gsm8k: question and answer ('… #### 42'), mapped as verl's preparation does.",
    change: 'fixed',
  }),
  instruction: key(z.string(), 'Let\'s think step by step and output the final answer after "####".', {
    doc: 'Text added after each question; only for data.format: gsm8k.',
    change: 'fixed',
  }),
  prompt_key: key(text, 'prompt', { doc: 'Column of the prompt: chat messages or text.', change: 'fixed' }),
  response_key: key(text, 'response', { doc: 'Column of the text to learn (kind: sft).', change: 'fixed' }),
  chosen_key: key(text, 'chosen', {
    doc: 'Column of the preferred response: text or chat messages (kind: dpo, rm).',
    change: 'fixed',
  }),
  rejected_key: key(text, 'rejected', { doc: 'Column of the other response (kind: dpo, rm).', change: 'fixed' }),
  reward_fn_key: key(text, 'data_source', {
    doc: 'Column that chooses the scorer and labels validation metrics.',
    change: 'fixed',
  }),
  max_prompt_length: key(count, 512, { doc: 'Maximum length of a prompt.', unit: 'tokens', change: 'ask' }),
  max_response_length: key(count, 512, {
    doc: 'Maximum number of tokens sampled per response.',
    unit: 'tokens',
    change: 'ask',
  }),
  max_length: key(count, 1024, {
    doc: 'Maximum length of prompt plus response (kind: sft, dpo, rm).',
    unit: 'tokens',
    change: 'ask',
  }),
  train_batch_size: key(count.max(mostPrompts), 1024, {
    doc: 'Prompts per iteration; at most 65,536, because the batch record names each of them.',
    unit: 'prompts',
    change: 'ask',
    sftDefault: 256,
  }),
  gen_batch_size: key(count.max(mostPrompts).nullable(), null, {
    doc: 'Prompts that dynamic sampling (algorithm.filter_groups) samples at a time, and prompts among which the estimator spo chooses those of a batch; null: data.train_batch_size.',
    unit: 'prompts',
    change: 'ask',
  }),
  oversample_factor: key(z.number().min(1), 1, {
    doc: 'Times as many prompts are sampled as are trained on; those that pass the filters are taken first, then the others (PRIME).',
    change: 'ask',
  }),
  filter_accuracy: key(z.boolean(), false, {
    doc: 'With oversample_factor: a prompt passes if the mean accuracy of its responses (acc, or the score) lies within the bounds.',
    change: 'ask',
  }),
  accuracy_lower_bound: key(z.number(), 0.2, { doc: 'The lowest mean that passes.', change: 'ask' }),
  accuracy_upper_bound: key(z.number(), 0.8, { doc: 'The highest mean that passes.', change: 'ask' }),
  filter_truncate: key(z.boolean(), false, {
    doc: 'With oversample_factor: a prompt passes if its responses have fewer than data.max_response_length - 1 tokens.',
    change: 'ask',
  }),
  val_batch_size: key(count.nullable(), null, {
    doc: 'Prompts of one job of a validation, at most; null: as many as fill rollout.max_num_seqs, which is never exceeded.',
    unit: 'prompts',
    change: 'free',
  }),
  curriculum: curriculumSection,
  sampler: key(moduleOrNull, null, {
    doc: 'A curriculum of your own: a module that weighs the rows after every batch (docs/own-sampler.md).',
    change: 'ask',
    pointsTo: 'module',
  }),
  shuffle: key(z.boolean(), true, { doc: 'Shuffle the rows, in a new order for each epoch.', change: 'ask' }),
  seed: key(z.int().nullable(), null, {
    doc: 'Seed of the order of the rows; null: the seed of the run.',
    change: 'ask',
  }),
  filter_overlong_prompts: key(z.boolean(), false, {
    doc: 'Leave out rows whose prompt is longer than data.max_prompt_length.',
    change: 'fixed',
  }),
  truncation: key(z.enum(['error', 'left', 'right', 'middle']), 'error', {
    doc: 'What to do with a prompt over the limit: refuse it (error), or cut it on this side.',
    change: 'fixed',
  }),
  train_max_samples: key(z.int().min(-1), -1, {
    doc: 'Use only so many rows: random ones, chosen by data.seed, with data.shuffle, else the first; -1: all.',
    unit: 'rows',
    change: 'fixed',
  }),
  val_max_samples: key(z.int().min(-1), -1, {
    doc: 'Use only so many rows: random ones, chosen by data.seed, with data.shuffle, else the first; -1: all.',
    unit: 'rows',
    change: 'ask',
  }),
  chat_template: key(z.enum(['auto', 'none']), 'auto', {
    doc: 'auto: messages are rendered with the chat template, text prompts are used as they are; none: never.',
    change: 'fixed',
  }),
  apply_chat_template_kwargs: key(
    z.record(z.string(), z.json()),
    {},
    {
      doc: 'Variables for the chat template, for instance {enable_thinking: false}.',
      change: 'fixed',
    },
  ),
  template_date: key(z.iso.date().nullable(), null, {
    doc: 'The date for templates that print it (yyyy-mm-dd); null: the date on which the run was created, also after a resume.',
    change: 'fixed',
  }),
});
