/** Words of `petrel data prepare`; by themselves, so that the command table needs no more than this. */

export const PREPARED_DATASETS = ['gsm8k', 'math'] as const;
export type PreparedDataset = (typeof PREPARED_DATASETS)[number];

export const PREPARED_SPLITS = ['train', 'test'] as const;
export type PreparedSplit = (typeof PREPARED_SPLITS)[number];
