/**
 * The kinds of runs, and how they differ: where responses come from, what a row holds, and which model is trained. The
 * stages and checks read this table; a new kind is one more entry, and a loss in workers/engine/losses/loss.ts.
 */
export interface RunKindFacts {
  /** Responses are sampled and scored. Otherwise they come with the rows, and an iteration is one optimiser step. */
  readonly samples: boolean;
  /** Form of the rows: a prompt (rl); with a response (sft); with a chosen and a rejected response (pairs). */
  readonly rows: RowKind;
  /** Responses that a row brings. 0: they are sampled. */
  readonly responsesPerRow: 0 | 1 | 2;
  /** What `data.val_files` is used for; none: a validation is not possible. */
  readonly validation: 'responses' | 'pairs' | 'none';
  /** The component that learns: core/records/components.ts. */
  readonly trains: 'actor' | 'rewardModel';
  /** What the kind is for, for messages and docs. */
  readonly doc: string;
}

export const ROW_KINDS = ['rl', 'sft', 'pairs'] as const;
export type RowKind = (typeof ROW_KINDS)[number];

export const RUN_KINDS = ['rl', 'sft', 'dpo', 'rm'] as const;
export type RunKind = (typeof RUN_KINDS)[number];

export const runKinds: Readonly<Record<RunKind, RunKindFacts>> = {
  rl: {
    samples: true,
    rows: 'rl',
    responsesPerRow: 0,
    validation: 'responses',
    trains: 'actor',
    doc: 'learn from rewards',
  },
  sft: {
    samples: false,
    rows: 'sft',
    responsesPerRow: 1,
    validation: 'none',
    trains: 'actor',
    doc: 'learn given responses',
  },
  dpo: {
    samples: false,
    rows: 'pairs',
    responsesPerRow: 2,
    validation: 'pairs',
    trains: 'actor',
    doc: 'prefer the chosen of two given responses',
  },
  rm: {
    samples: false,
    rows: 'pairs',
    responsesPerRow: 2,
    validation: 'pairs',
    trains: 'rewardModel',
    doc: 'train a reward model that scores the chosen of two given responses higher',
  },
};

/** Does a run of this kind sample its responses? */
export const samplesResponses = (kind: RunKind): boolean => runKinds[kind].samples;
