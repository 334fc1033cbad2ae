/** The load of `npm run bench:scale`: runs that share workers which do not compute. */
import type { Stage } from '../../core/wire/jobs/index.ts';

/** Rollout jobs of an iteration, and as many reward jobs. */
const rolloutJobs = 32;
const promptsPerJob = 2;
const samplesPerPrompt = 2;
/** Iterations that were computed and can be played. */
const recordedIterations = 16;
/** Jobs that a worker decodes in parallel: `slotsOf` of workers/intake.ts. */
export const slotsOfWorker = 8;

export const example = 'examples/01-arithmetic-grpo';
/** Overrides that switch off validations and checkpoints, so that every iteration asks for the same jobs. */
export const overrides: readonly string[] = [
  'data.val_files=null',
  'trainer.test_freq=-1',
  'trainer.save_freq=-1',
  `trainer.total_training_steps=${recordedIterations}`,
  `data.train_batch_size=${rolloutJobs * promptsPerJob}`,
  `actor.ppo_mini_batch_size=${rolloutJobs * promptsPerJob}`,
  `rollout.n=${samplesPerPrompt}`,
  `rollout.max_num_seqs=${promptsPerJob * samplesPerPrompt}`,
];

/** How long a played job takes, in seconds: uniform between the two. Other stages take no time. */
export const seconds: Readonly<Partial<Record<Stage, readonly [number, number]>>> = {
  rollout: [4, 12],
  update: [2, 2],
};
