/** What a run is doing, in words for people. */

/** Plain words for stages whose names do not explain themselves. */
const words: Readonly<Record<string, string>> = {
  open: 'loading the model',
  reward: 'scoring',
  evaluate: 'validation',
  checkpoint: 'saving the checkpoint',
};

/**
 * Describes what a run does, such as `rollout 37 %`. A stage that has finished all its parts still has to write its
 * result.
 */
export function activityText(
  stage: string,
  { done, total }: { readonly done: number; readonly total: number } = { done: 0, total: 0 },
): string {
  const word = Object.hasOwn(words, stage) ? (words[stage] ?? stage) : stage;
  if (!(total > 0)) return word;
  const percent = Math.round((100 * done) / total);
  return percent >= 100 ? `${word}, finishing` : `${word} ${Math.max(0, percent)} %`;
}
