/** What a run is doing, in words for people. */

/** Stages whose names say too little. */
const words: Readonly<Record<string, string>> = {
  open: 'loading the model',
  reward: 'scoring',
  evaluate: 'validation',
  checkpoint: 'saving the checkpoint',
};

/** `rollout 37 %`. A stage that has done all its parts still has something to finish: its result is not there yet. */
export function activityText(
  stage: string,
  { done, total }: { readonly done: number; readonly total: number } = { done: 0, total: 0 },
): string {
  const word = Object.hasOwn(words, stage) ? (words[stage] ?? stage) : stage;
  if (!(total > 0)) return word;
  const percent = Math.round((100 * done) / total);
  return percent >= 100 ? `${word}, finishing` : `${word} ${Math.max(0, percent)} %`;
}
