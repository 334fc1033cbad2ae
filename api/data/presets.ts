/** Words of `petrel data arithmetic`; by themselves, so that the command table needs no more than this. */

/** question: a chat message in words; digits: the text `37+45=`, for models that read characters. */
export const ARITHMETIC_PRESETS = ['question', 'digits'] as const;
export type ArithmeticPreset = (typeof ARITHMETIC_PRESETS)[number];

export const ARITHMETIC_SPLITS = ['train', 'validation'] as const;
export type ArithmeticSplit = (typeof ARITHMETIC_SPLITS)[number];
