/** Checks validations: which weights they used, and whether their accuracy follows from their scores. */
import { actorIn } from './components.ts';
import type { InputFacts } from './inputs.ts';
import type { Objects } from './objects.ts';
import { evaluationShape, scoreTableShape } from './records.ts';
import type { Evaluation, Revision } from './records.ts';
import type { Results } from './results.ts';
import { integers } from './tensors.ts';
import type { Committed } from './states.ts';
import type { Branch } from './terms.ts';

export interface EvaluationPorts {
  readonly objects: Objects;
  readonly results: Results;
  readonly inputs: InputFacts;
  readonly runId: string;
  readonly deep: boolean;
  /** Accepts a missing object when retention may have removed it. */
  readonly absent: (k: number, key: string, why: string) => void;
}

/** Positions that were validated, ascending. */
export async function checkEvaluations(
  ports: EvaluationPorts,
  path: readonly Branch[],
  committed: ReadonlyMap<number, Committed>,
): Promise<number[]> {
  const found = new Set<number>();
  for (const { term, from, until } of path) {
    for (const [k, there] of committed) {
      if (k < from || k > (until ?? Number.POSITIVE_INFINITY)) continue;
      const key = ports.objects.keys.evaluation(term.term, k);
      const stored = await ports.objects.find(key, evaluationShape);
      if (stored.type === 'absent') continue;
      found.add(k);
      const policy = (k === until ? there.before : undefined) ?? there;
      if (stored.type === 'read') await checkEvaluation(ports, term.term, k, policy, stored.record, key);
    }
  }
  return [...found].sort((a, b) => a - b);
}

/**
 * Every policy that was due for validation inside a term must have a record. The last policy of a term may have none
 * yet.
 */
export async function checkValidations(
  { objects }: Pick<EvaluationPorts, 'objects'>,
  path: readonly Branch[],
  revisionOf: (branch: Branch) => Revision | undefined,
  end: number,
): Promise<void> {
  for (const branch of path) {
    const revision = revisionOf(branch);
    if (revision?.inputs.validation === undefined) continue;
    const { test_freq: every, val_before_train: base } = revision.recipe.trainer;
    const isDue = (k: number) => (k === 0 ? base : every > 0 && k % every === 0);
    // The policy at the start of a later term was validated in the term before it, or in neither of the two.
    const first = branch.term.parent === undefined ? branch.from : branch.from + 1;
    for (let k = first; k < (branch.until ?? end); k++) {
      const key = objects.keys.evaluation(branch.term.term, k);
      if (isDue(k) && (await objects.size(key)) === undefined)
        objects.faults.add(key, `the validation of policy ${k}, which the recipe asks for`, 'nothing');
    }
  }
}

async function checkEvaluation(
  { objects, results, runId, inputs, deep, absent }: EvaluationPorts,
  term: number,
  k: number,
  there: Committed,
  record: Evaluation,
  key: string,
): Promise<void> {
  const { faults } = objects;
  faults.equal(key, 'runId', runId, record.runId);
  faults.equal(key, 'term', term, record.term);
  faults.equal(key, 'iteration', k, record.iteration);
  faults.equal(key, 'weightsDigest', actorIn(there.components)?.weightsDigest, record.weightsDigest);
  if (record.results.some((jobId) => jobId.startsWith('compare-')))
    return checkComparison({ objects, results, runId, inputs, deep, absent }, there, record, key, k);
  const parts = await results.parts(record.results, key);
  if (parts.length * 2 !== record.results.length) return;
  faults.equal(
    key,
    'questions',
    parts.reduce((sum, { samples }) => sum + samples, 0),
    record.questions,
  );
  if (!deep) return;
  // val-core/{data source}/{acc or reward}/mean@n; without the data source in records of older petrel versions.
  const isScore = Object.keys(record.metrics).some((name) => /^val-core\/(.+\/reward|score)\/mean@\d+$/.test(name));
  const values: (number | null)[] = [];
  for (const { trajectories, scores } of parts) {
    const [tensors, table] = [
      await objects.tensors(objects.keys.blob(trajectories), trajectories, true),
      await objects.json(scores, scoreTableShape),
    ];
    if (tensors === undefined) absent(k, objects.keys.blob(trajectories), key);
    if (table === undefined) absent(k, objects.keys.blob(scores), key);
    if (tensors === undefined || table === undefined) return;
    faults.equal(
      objects.keys.blob(trajectories),
      'weights',
      actorIn(there.components)?.weightsDigest,
      tensors.metadata['weights'],
    );
    const samples = objects.tried(
      objects.keys.blob(trajectories),
      'trajectories',
      () => integers(tensors, 'draw').length,
    );
    faults.equal(objects.keys.blob(scores), 'scores', samples, table.scores.length);
    const column = isScore ? undefined : table.columns['acc'];
    values.push(
      ...table.scores.map((score, b) => (Array.isArray(column) && typeof column[b] === 'number' ? column[b] : score)),
    );
  }
  faults.equal(key, 'failed', values.filter((value) => value === null).length, record.failed);
  const accuracy = values.reduce<number>((sum, value) => sum + (value ?? 0), 0) / Math.max(1, values.length);
  if (!(Math.abs(accuracy - record.accuracy) <= 1e-9)) faults.add(key, `accuracy ${accuracy}`, String(record.accuracy));
}

/** A validation on pairs: one job compares them with the model at this position. */
async function checkComparison(
  { objects, results, deep, absent }: EvaluationPorts,
  there: Committed,
  record: Evaluation,
  key: string,
  k: number,
): Promise<void> {
  const { faults } = objects;
  const compared = await results.comparison(record.results, key);
  if (compared === undefined) return;
  faults.equal(key, 'questions', compared.pairs, record.questions);
  if (!deep) return;
  const where = objects.keys.blob(compared.scores);
  const table = await objects.json(compared.scores, scoreTableShape);
  if (table === undefined) return absent(k, where, key);
  faults.equal(where, 'weights', actorIn(there.components)?.weightsDigest, table.trajectories);
  faults.equal(where, 'pairs', compared.pairs, table.scores.length);
  const right = table.scores.reduce<number>((sum, score) => sum + (score ?? 0), 0);
  const accuracy = right / Math.max(1, table.scores.length);
  if (!(Math.abs(accuracy - record.accuracy) <= 1e-9)) faults.add(key, `accuracy ${accuracy}`, String(record.accuracy));
}
