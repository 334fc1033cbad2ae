/** The metrics file of a run with `trainer.logger: file`, for the commands that start one. */
import { parseRecipe } from '../../core/recipe/index.ts';
import type { RunLog } from '../../log/run/run-log.ts';
import { noteMetricsFile } from '../../infra/telemetry/metrics-notes.ts';
import type { ApiContext } from '../context.ts';

/** Makes the control process write the file, and tells the user its path. */
export async function beginMetricsFile(log: RunLog, { home, cwd, notice }: ApiContext): Promise<void> {
  const recipe = parseRecipe((await log.revision()).recipe);
  const path = noteMetricsFile(home, { runId: log.runId, store: log.store.url }, recipe, cwd);
  if (path !== undefined) notice(`metrics are written to ${path}`);
}
