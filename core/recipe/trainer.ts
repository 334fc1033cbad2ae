import { z } from 'zod';
import { count, countOrZero, key, section, text } from './key.ts';

const everyIterations = z
  .int()
  .refine((value) => value === -1 || value > 0, 'expected -1 (never) or a number of iterations');

const validationMetric = z
  .string()
  .regex(/^(accuracy|val-(core|aux)\/.+)$/, 'expected accuracy, or the name of a metric of the validation: val-core/…');

const LOGGERS = ['console', 'file', 'wandb', 'mlflow', 'swanlab', 'tensorboard', 'trackio', 'clearml'] as const;

/** `trainer`: how long to train, and when to save and validate. */
export const trainerSection = section('How long to train, how often to save and to validate.', {
  engine: key(z.enum(['native', 'torch']), 'native', {
    doc: 'The engine that trains; torch: any model of transformers (petrel engine install torch).',
    change: 'ask',
    verl: 'model_engine',
  }),
  fsdp_size: key(count, 1, {
    doc: 'Processes of the torch engine over which a model is divided, one for each device.',
    unit: 'processes',
    change: 'ask',
  }),
  ulysses_sequence_parallel_size: key(count, 1, {
    doc: 'Processes of these that share a micro-batch: each has a part of its tokens, and of the heads in attention.',
    unit: 'processes',
    change: 'ask',
  }),
  tensor_model_parallel_size: key(count, 1, {
    doc: 'Processes of these that share each matrix of a layer, by the plan of transformers for the model.',
    unit: 'processes',
    change: 'ask',
  }),
  expert_model_parallel_size: key(count, 1, {
    doc: 'Processes of these that share the experts of a layer: tokens go to the process that has their expert.',
    unit: 'processes',
    change: 'ask',
  }),
  cpu_offload: key(z.boolean(), false, {
    doc: 'Weights, gradients and moments lie in the machine’s own memory; layers come to the GPU while they compute.',
    change: 'ask',
  }),
  state_dtype: key(z.enum(['fp32', 'bf16']), 'fp32', {
    doc: 'Type of weights, gradients and moments; bf16: half the memory, and each step of AdamW is rounded stochastically.',
    change: 'ask',
  }),
  total_epochs: key(count, 30, {
    doc: 'Number of passes over the rows, when total_training_steps is null.',
    change: 'free',
    sftDefault: 4,
  }),
  total_training_steps: key(count.nullable(), null, {
    doc: 'Number of iterations of the run; null: computed from total_epochs.',
    unit: 'iterations',
    change: 'free',
  }),
  save_freq: key(everyIterations, 10, {
    doc: 'Iterations between checkpoints; -1: none in between. The final state is always saved.',
    unit: 'iterations',
    change: 'free',
  }),
  test_freq: key(everyIterations, -1, {
    doc: 'Iterations between validations; -1: only before the first and after the last.',
    unit: 'iterations',
    change: 'free',
  }),
  val_before_train: key(z.boolean(), true, { doc: 'Validate the base model first.', change: 'free' }),
  val_only: key(z.boolean(), false, { doc: 'Only validate, then end.', change: 'free' }),
  max_actor_ckpt_to_keep: key(count.nullable(), null, {
    doc: 'How many of the newest verified checkpoints are kept, at least 2; null: all, so that a resume or fork can start from any iteration.',
    unit: 'checkpoints',
    change: 'free',
  }),
  best_metric: key(validationMetric.nullable(), null, {
    doc: 'Keep the best checkpoint by this metric of its validation, besides the newest ones: accuracy (the score where there is none), or a name such as val-core/openai/gsm8k/acc/mean@1; null: none is chosen.',
    change: 'free',
  }),
  best_metric_mode: key(z.enum(['max', 'min']), 'max', {
    doc: 'max: the largest value of trainer.best_metric is the best; min: the smallest.',
    change: 'free',
  }),
  max_bad_steps: key(count, 3, {
    doc: 'The run pauses after this many consecutive skipped updates (non-finite loss or gradient).',
    unit: 'iterations',
    change: 'free',
  }),
  keep_batches: key(z.enum(['since_oldest_checkpoint', 'all']), 'since_oldest_checkpoint', {
    doc: 'Which iterations keep their samples and batches: those after the oldest checkpoint that is kept, or all of them.',
    change: 'free',
  }),
  virtual_shards: key(count, 1, {
    doc: 'Number of parts of a batch, for any number of trainers. It decides the order of sums.',
    unit: 'shards',
    change: 'fixed',
  }),
  standby: key(z.int().min(0).max(1), 0, {
    doc: '1: a second trainer applies every batch, too. It goes on at once when the first is lost, and in a deterministic run the two check each other.',
    unit: 'trainers',
    change: 'free',
  }),
  share: key(z.enum(['queue', 'turns']), 'queue', {
    doc: 'What a run does when another one waits for its trainer. queue: it keeps the trainer until it pauses or ends. turns: it saves its state and gives the trainer up between iterations.',
    change: 'free',
  }),
  turn_iterations: key(count, 1, {
    doc: 'With share: turns, the trainer is given up only after iterations that this number divides. More iterations: fewer states saved and loaded.',
    unit: 'iterations',
    change: 'free',
  }),
  critic_warmup: key(countOrZero, 0, {
    doc: 'The policy is trained from this iteration on; the ones before it train only the critic. 0 and 1: from the first.',
    unit: 'iterations',
    change: 'ask',
  }),
  project_name: key(text, 'petrel', {
    doc: 'Name of the project for experiment trackers, and of the folder of the file logger.',
    change: 'free',
  }),
  logger: key(z.union([z.enum(LOGGERS), z.array(z.enum(LOGGERS))]), ['console'], {
    doc: 'Where metrics go besides the store: one name or a list. file: JSON lines in <working folder>/<trainer.project_name>/<run>.jsonl.',
    change: 'free',
  }),
  log_val_generations: key(countOrZero, 0, {
    doc: 'Validation samples sent to trackers.',
    unit: 'samples',
    change: 'free',
  }),
});
