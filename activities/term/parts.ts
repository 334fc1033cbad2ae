/** The states and jobs of the parts of a run that is divided: its critic has jobs of its own. */
import { allOf } from '../../core/parallel.ts';
import { componentOf, someOf } from '../../core/records/components.ts';
import type { NumericProfile } from '../../core/records/schema.ts';
import type { Digest } from '../../core/ids.ts';
import type { Head, LogPosition } from '../../log/run/run-log.ts';
import type { ActivityPorts } from '../ports/index.ts';
import type { Part } from '../settings.ts';

type StatePorts = Pick<ActivityPorts, 'runStateOf'>;

/** The state of a part at a position: that of the run where it is not divided. */
export function stateOfPart(
  { runStateOf }: StatePorts,
  { stateDigest, components }: Pick<LogPosition, 'stateDigest' | 'components'>,
  { components: names = [], part }: Part,
): Digest {
  return part === true ? runStateOf(someOf(components, names)) : stateDigest;
}

/** The arithmetic of a part. */
export function profileOfPart(
  { profile, termRecord }: Pick<Head, 'profile' | 'termRecord'>,
  { components: [first] = [], part }: Part,
): NumericProfile {
  return part === true && first !== undefined ? componentOf(termRecord.components, first).profile : profile;
}

/**
 * Does the work of all parts at the same time. When one fails, the signal of the others is aborted with its error, and
 * all are awaited before this rejects with it.
 */
export async function forEachPart<T>(
  parts: readonly Part[],
  signal: AbortSignal,
  work: (part: Part, signal: AbortSignal) => Promise<T>,
): Promise<T[]> {
  const failed = new AbortController();
  const either = AbortSignal.any([signal, failed.signal]);
  const works = parts.map((part) =>
    work(part, either).catch((error: unknown) => {
      failed.abort(error);
      throw error;
    }),
  );
  return allOf(works);
}
