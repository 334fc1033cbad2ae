/** How the states of a run are named: by their content, or by the updates that made them. */
import type { ComponentCheckpoint } from '../../core/records/schema.ts';
import type { RunLog } from './run-log.ts';

/**
 * Is this state named by the updates that made it? Then the digests of its parts say what it has. Only where a term of
 * the run has named states so: a run may have gone on with another engine.
 */
export async function isNamedByLineage(
  log: RunLog,
  { naming, parts }: Pick<ComponentCheckpoint, 'naming' | 'parts'>,
): Promise<boolean> {
  if (naming !== 'lineage' || parts.some(({ digest }) => digest === undefined)) return false;
  const terms = await log.chain();
  return terms.some(({ record }) =>
    Object.values(record.components).some(({ profile }) => profile.naming === 'lineage'),
  );
}
