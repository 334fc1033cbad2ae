/** Words of `petrel data arithmetic`; by themselves, so that the command table needs no more than this. */

/** question: a chat message in words; digits: the text `37+45=`, for models that read characters. */
export const PRESETS = ['question', 'digits'] as const;
export type Preset = (typeof PRESETS)[number];

export const SPLITS = ['train', 'validation'] as const;
export type Split = (typeof SPLITS)[number];
