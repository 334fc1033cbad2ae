/** What happens when a schedule fires while one of its runs is active. */
export const overlapPolicies = ['skip', 'buffer', 'cancel', 'all'] as const;
export type OverlapPolicy = (typeof overlapPolicies)[number];

/** Texts for help and `schedule show`. */
export const overlapDocs: Readonly<Record<OverlapPolicy, string>> = {
  skip: 'do not start',
  buffer: 'start when it has ended; one waits at most',
  cancel: 'cancel it, then start',
  all: 'start beside it',
};
