/** The start of a term that a standby has begun: a state of its own, which the result of its last update names. */
import { equalComponents } from './components.ts';
import { canonicalText } from './canonical.ts';
import { flat } from './chain.ts';
import type { Standing } from './chain.ts';
import type { Objects } from './objects.ts';
import { resultShape, updatedShape } from './records.ts';
import type { Branch } from './terms.ts';

/** The profile of a run that is not deterministic. */
const anyArithmetic = 'any';

/** `before`: what is known at the position where the term starts, without it. */
export async function checkStandbyStart(
  objects: Objects,
  { term, key, from }: Branch,
  before: Standing,
): Promise<void> {
  if (term.standby === undefined) return;
  const { faults } = objects;
  const reproducible = Object.values(term.components).some(({ profile }) => profile.id !== anyArithmetic);
  if (term.parent === undefined || reproducible)
    faults.add(key, 'the state of a standby only in a later term of a run that is not deterministic', 'one');
  const found = await objects.need(
    objects.keys.result(term.standby.result),
    resultShape,
    `the update of a standby: ${key} begins with its state`,
  );
  if (found === undefined) return;
  const where = objects.keys.result(term.standby.result);
  faults.equal(where, 'jobId', term.standby.result, found.jobId);
  faults.equal(where, 'stage', 'update', found.stage);
  const output = objects.tried(where, 'the output of an update', () => updatedShape(found.output, 'output'));
  if (output === undefined) return;
  faults.equal(key, 'startState, the state that the standby has named:', output.stateDigest, term.startState);
  equalComponents(faults, key, `of the standby at position ${from}`, output.components, term.components);
  const { counters } = before;
  if (counters === undefined) return;
  const [{ badSteps: _, ...expected }, { badSteps: __, ...after }] = [flat(counters), flat(output.after)];
  faults.equal(where, `after, the counters at position ${from}:`, canonicalText(expected), canonicalText(after));
}
