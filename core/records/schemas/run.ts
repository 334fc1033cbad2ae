/** A run, the inputs that it copies, and its revisions. FORMAT.md describes it. */
import { z } from 'zod';
import { RUN_KINDS } from '../../run-kinds.ts';
import { originOf2 } from '../format2.ts';
import { count, counters, digest, drawRange, format, keyName, plainFileName } from './fields.ts';

const storedRun = z.object({
  format,
  runId: z.string(),
  name: z.string(),
  kind: z.enum(RUN_KINDS),
  createdAt: z.string(),
  /** The firing of a schedule that created the run. */
  schedule: z.object({ name: z.string(), generation: z.int().positive(), time: z.string() }).optional(),
  /** Start of a fork: a state of another run. It is read until the fork's first term is open, and not after that. */
  origin: z
    .object({ runId: keyName, position: count, stateDigest: digest, counters, skippedDraws: z.array(drawRange) })
    .optional(),
});

export const runRecord = z.preprocess(originOf2, storedRun);

export type RunRecord = z.infer<typeof runRecord>;

/** A loss or an estimator of the user's own: a blob with its JavaScript, and what it says of itself. */
export const ownModule = z.object({
  module: digest,
  /** Name of the file that it was made from. */
  fileName: plainFileName,
  /** What it reads: core/rl/own/types.ts. */
  needs: z.array(z.string()),
  deterministic: z.boolean(),
});

export type OwnModuleInput = z.infer<typeof ownModule>;

/** A sampler of the user's own. */
const ownSampler = ownModule.extend({
  /** The blob with what it said of the rows when the run was created. */
  start: digest,
});

export type OwnSamplerModule = z.infer<typeof ownSampler>;

/** Everything that a run reads besides its records, by digest. */
export const runInputs = z.object({
  model: digest,
  reference: digest.optional(),
  /** The teacher of a distillation. */
  teacher: digest.optional(),
  /** A sequence classifier that scores responses: `reward.reward_model`. */
  rewardModel: digest.optional(),
  train: digest,
  /** Number of training rows that are used. */
  trainRows: z.int().positive(),
  validation: digest.optional(),
  validationRows: z.int().positive().optional(),
  /** The scorer: a built-in's name with the revision of its code, or a user's module by digest. */
  scorer: z
    .discriminatedUnion('type', [
      /** A built-in scorer; without a name, each row's data source decides. */
      z.object({ type: z.literal('builtin'), name: z.string().optional(), revision: z.string() }),
      z.object({
        type: z.literal('module'),
        module: digest,
        fileName: plainFileName,
        exportName: z.string(),
        deterministic: z.boolean(),
        /**
         * A blob with its other files and the list of its packages: rewards/scorer-files.ts. Absent: it is one file.
         */
        files: digest.optional(),
      }),
    ])
    .optional(),
  /** `actor.policy_loss.loss_mode` as a path. */
  loss: ownModule.optional(),
  /** `algorithm.adv_estimator` as a path. */
  estimator: ownModule.optional(),
  /** `data.sampler`. */
  sampler: ownSampler.optional(),
});

export type RunInputs = z.infer<typeof runInputs>;

/** The blobs of a run that its inputs name: code of the user's own, and what a sampler said of the rows. */
export const modulesOf = ({ scorer, loss, estimator, sampler }: RunInputs): string[] => [
  ...(scorer?.type === 'module' ? [scorer.module, ...(scorer.files === undefined ? [] : [scorer.files])] : []),
  ...[loss, estimator, sampler].flatMap((one) => one?.module ?? []),
  ...(sampler === undefined ? [] : [sampler.start]),
];

export const revisionRecord = z.object({
  format,
  runId: z.string(),
  revision: z.int().positive(),
  /** Valid for iterations after this position. */
  fromPosition: count,
  /** The resolved recipe; validated by core/recipe. */
  recipe: z.record(z.string(), z.unknown()),
  inputs: runInputs,
  createdAt: z.string(),
});

export type RevisionRecord = z.infer<typeof revisionRecord>;
