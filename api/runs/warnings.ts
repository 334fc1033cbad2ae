/** Warnings about a run, from the metrics of its newest iterations. */
import { warningsOf, warningWindow } from '../../core/run-warnings.ts';
import type { RunWarning, WarnedIteration } from '../../core/run-warnings.ts';
import type { Head, RunLog } from '../../log/run/run-log.ts';
import { readableIteration } from './readable-iteration.ts';

interface Known {
  /** The status record that the warnings are shown with. */
  readonly parent: string;
  readonly warnings: readonly RunWarning[];
}

/** Status is queried again and again, so each iteration is read once. */
const known = new WeakMap<RunLog, Known>();

export async function runWarnings(log: RunLog, head: Head | undefined): Promise<readonly RunWarning[]> {
  if (head === undefined) return [];
  const before = known.get(log);
  if (before?.parent === head.parent) return before.warnings;
  const warnings = warningsOf(await newestMetrics(log, head));
  known.set(log, { parent: head.parent, warnings });
  return warnings;
}

/** Only records of iterations are read, because finding validations means a search in every term. */
async function newestMetrics(log: RunLog, head: Head): Promise<WarnedIteration[]> {
  const from = Math.max((await log.first()) + 1, head.position - warningWindow + 1);
  const positions = Array.from({ length: Math.max(0, head.position - from + 1) }, (_, i) => from + i);
  const read = await Promise.all(
    positions.map(async (k) => {
      const found = await readableIteration(log, k, head);
      return found && { iteration: k, metrics: { ...found.batch.record.metrics, ...found.update.record.metrics } };
    }),
  );
  return read.filter((one) => one !== undefined);
}
