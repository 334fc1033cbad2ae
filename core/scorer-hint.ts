import type { RunInputs } from './records/schema.ts';

/** The name of a run's scorer module in errors. The run has a copy; the user has a file with this name. */
export function shownModule(fileName: string): string {
  return `./${fileName}`;
}

/** The command that fixes a scorer's bug. A plain resume would use the run's copy of the module, with the bug. */
export function fixScorerHint(runId: string, scorer: RunInputs['scorer']): string {
  if (scorer?.type !== 'module') return `petrel resume ${runId}`;
  const path = shownModule(scorer.fileName);
  const resume = `petrel resume ${runId} reward.custom_reward_function.path=${path} --accept`;
  return `fix ${scorer.fileName}, then run in its folder: ${resume}`;
}
