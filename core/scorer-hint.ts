import type { RunInputs } from './records/schema.ts';

/** What errors call a run's scorer module. The run has a copy; its owner has a file of this name. */
export function shownModule(fileName: string): string {
  return `./${fileName}`;
}

/** What to type when a scorer has a bug. A resume alone scores with the run's copy of the module, bug and all. */
export function fixScorerHint(runId: string, scorer: RunInputs['scorer']): string {
  if (scorer?.type !== 'module') return `petrel resume ${runId}`;
  const path = shownModule(scorer.fileName);
  return `fix ${path}, then petrel resume ${runId} reward.custom_reward_function.path=${path} --accept`;
}
