/**
 * Verifies a run's ledger from its objects alone: one chain of records, one outcome for every draw, no sample trained
 * twice, every object equal to its digest. It shares no code with the writers of the records: it implements the formats
 * of core/records/FORMAT.md a second time.
 */
import { actorIn } from './components.ts';
import type { Store } from '../../core/ports/store.ts';
import { originOf } from './adopted.ts';
import { beginTerm, beforeFirst, follow } from './chain.ts';
import type { Standing } from './chain.ts';
import { checkComposition } from './composition.ts';
import { checkEvaluations, checkValidations } from './evaluations.ts';
import { checkColumns } from './columns.ts';
import { DrawOutcomes } from './outcomes.ts';
import { InputFacts } from './inputs.ts';
import type { Tokenise } from './inputs.ts';
import { abandonedAfter, iterationsOf } from './iterations.ts';
import type { Iteration } from './iterations.ts';
import { Objects } from './objects.ts';
import { checkRates, wantedIterations } from './rates.ts';
import { runShape } from './records.ts';
import type { Revision } from './records.ts';
import { Results } from './results.ts';
import { readRetention } from './retention.ts';
import type { Retention } from './retention.ts';
import { Revisions } from './revisions.ts';
import { checkManifests, checkStates } from './states.ts';
import type { Committed } from './states.ts';
import { checkStandbyStart } from './standbys.ts';
import { readState } from './status.ts';
import { readTerms } from './terms.ts';
import type { Branch, Terms } from './terms.ts';
import type { AbandonedBranch, LedgerVerdict } from './verdict.ts';

export type { LedgerFault, LedgerVerdict } from './verdict.ts';

export interface VerifyOptions {
  /**
   * True: reads every blob, compares samples token by token and hashes all states. False: reads only records, headers
   * and sizes.
   */
  readonly deep?: boolean;
  readonly say?: (text: string) => void;
  /**
   * Tokenises rows that are stored as text, so that their tokens are compared. Without it only their bytes are checked.
   */
  readonly tokenise?: Tokenise;
}

export async function verifyLedger(store: Store, runId: string, options: VerifyOptions = {}): Promise<LedgerVerdict> {
  return new Verification(store, runId, options).run();
}

class Verification {
  readonly #runId: string;
  readonly #deep: boolean;
  readonly #say: (text: string) => void;
  readonly #objects: Objects;
  readonly #outcomes: DrawOutcomes;
  readonly #results: Results;
  readonly #inputs: InputFacts;
  readonly #committed = new Map<number, Committed>();
  /** Missing blobs, by the iteration that produced them. */
  readonly #absent: { readonly k: number; readonly key: string; readonly why: string }[] = [];
  #samplesCompared = 0;
  #pending = false;

  constructor(store: Store, runId: string, { deep = false, say = () => {}, tokenise }: VerifyOptions) {
    this.#runId = runId;
    this.#deep = deep;
    this.#say = say;
    this.#objects = new Objects(store, runId);
    this.#outcomes = new DrawOutcomes(this.#objects);
    this.#results = new Results(this.#objects);
    this.#inputs = new InputFacts(this.#objects, tokenise);
  }

  async run(): Promise<LedgerVerdict> {
    const objects = this.#objects;
    // The state is read first: a running run moves forward during the check, never back.
    const state = await readState(objects, this.#runId);
    const run = await objects.need(objects.keys.run, runShape, 'the claim of the id');
    if (run !== undefined) objects.faults.equal(objects.keys.run, 'runId', this.#runId, run.runId);
    const revisions = await Revisions.read(objects, this.#runId, state !== 'unknown');
    for (const revision of revisions.every)
      await this.#inputs.check(revision.inputs, objects.keys.revision(revision.revision), this.#deep);
    const terms = await readTerms(objects, this.#runId);
    const end = await this.#walk(terms, revisions);
    this.#say('reading checkpoints and weights');
    const isLineage = [...terms.all.values()].some(({ components }) =>
      Object.values(components).some(({ profile }) => profile.naming === 'lineage'),
    );
    const states = await checkStates(objects, this.#runId, this.#committed, this.#deep, isLineage);
    const evaluations = await checkEvaluations(this.#ports(), terms.path, this.#committed);
    const abandoned = await this.#abandoned(terms);
    const revision = revisions.inForce(terms.path.at(-1));
    await checkValidations(this.#ports(), terms.path, (term) => revisions.inForce(term), end.position);
    await checkColumns(objects, this.#runId, terms.all);
    const retention = await readRetention(objects, this.#runId);
    await checkManifests(objects, retention);
    const retired = this.#retire(retention);
    const iterations = revision === undefined ? 0 : wantedIterations(revision);
    const wanted = [iterations, ...(await this.#wantedBefore(terms, revisions, end))];
    if (state === 'completed') this.#checkEnd(end, wanted, revision, states.checkpoints, evaluations);
    objects.tellUnchecked();
    const faults = objects.faults.all;
    return {
      runId: this.#runId,
      ok: faults.length === 0,
      deep: this.#deep,
      state,
      terms: terms.newest,
      position: end.position,
      iterations,
      pending: this.#pending,
      draws: this.#outcomes.draws,
      fates: this.#outcomes.counts,
      samplesTrained: this.#outcomes.samplesTrained,
      samplesCompared: this.#samplesCompared,
      checkpoints: states.checkpoints,
      evaluations,
      abandoned,
      retired,
      unnamed: states.unnamed,
      objects: objects.objects,
      bytes: objects.bytes,
      faults,
    };
  }

  #ports() {
    const absent = (k: number, key: string, why: string): void => void this.#absent.push({ k, key, why });
    return {
      objects: this.#objects,
      results: this.#results,
      inputs: this.#inputs,
      runId: this.#runId,
      deep: this.#deep,
      absent,
    };
  }

  /** Walks over the committed log from its beginning. Returns what is known at its end. */
  async #walk({ path, all }: Terms, revisions: Revisions): Promise<Standing> {
    let standing = beforeFirst(path[0]);
    this.#outcomes.startAt(standing.counters?.cursor ?? 0);
    for (const branch of path) {
      await checkStandbyStart(this.#objects, branch, standing);
      standing = beginTerm(this.#objects, branch, standing);
      this.#outcomes.begin(branch);
      const ofBefore = this.#committed.get(standing.position);
      this.#commit(standing, branch.term.standby && ofBefore);
      for await (const iteration of iterationsOf(this.#objects, branch)) {
        if (iteration.k % 50 === 0) this.#say(`iteration ${iteration.k}`);
        standing = await this.#iteration(branch, all, standing, iteration, revisions);
      }
    }
    return standing;
  }

  async #iteration(
    branch: Branch,
    terms: Terms['all'],
    before: Standing,
    iteration: Iteration,
    revisions: Revisions,
  ): Promise<Standing> {
    const { batch, update } = iteration;
    const after = follow(this.#objects, this.#runId, branch, before, iteration);
    this.#commit(after);
    this.#pending = update.type === 'absent';
    if (batch.type !== 'read') return after;
    const origin = await originOf(this.#objects, terms, branch.term, batch.record, batch.key);
    const revision = revisions.of(batch.record, origin?.term ?? branch.term, batch.key);
    this.#outcomes.add(batch.record, update.type === 'read' ? update.record : undefined, revision, batch.key);
    if (revision !== undefined) checkRates(this.#objects, batch.record, revision, batch.key);
    // An adopted batch was produced from the same objects as the batch that it repeats.
    const made = origin ?? {
      batch: batch.record,
      key: batch.key,
      weights: before.components && actorIn(before.components)?.weightsDigest,
    };
    this.#samplesCompared += await checkComposition(this.#ports(), made.batch, made.key, revision, made.weights);
    return after;
  }

  #commit({ position, state, components }: Standing, before?: Committed): void {
    if (state === undefined || components === undefined) return;
    this.#committed.set(position, { state, components, ...(before && { before }) });
  }

  async #abandoned({ older }: Terms): Promise<AbandonedBranch[]> {
    const branches: AbandonedBranch[] = [];
    for (const term of older) branches.push(await abandonedAfter(this.#objects, term));
    return branches.filter(({ iterations }) => iterations > 0);
  }

  /**
   * A missing object is excused only when retention marked it for removal, at or below its floor. Returns how many
   * objects are excused.
   */
  #retire({ floor, marked }: Retention): number {
    const retired = new Set<string>();
    for (const { k, key, why } of this.#absent) {
      if (k <= floor && marked.has(key)) retired.add(key);
      else this.#objects.faults.add(key, `an object: ${why} names it`, 'nothing');
    }
    return retired.size;
  }

  /**
   * Resuming a completed run first opens a term, and only then changes the state. While the new term holds only its own
   * record, the number of iterations of its parent's recipe is enough.
   */
  async #wantedBefore({ path }: Terms, revisions: Revisions, end: Standing): Promise<number[]> {
    const [before, newest] = path.slice(-2);
    if (before === undefined || newest === undefined || newest.from !== end.position) return [];
    const { store, keys } = this.#objects;
    if ((await store.list(`${keys.terms}${newest.term.term}/`)).length > 1) return [];
    const revision = revisions.inForce(before);
    return revision === undefined ? [] : [wantedIterations(revision)];
  }

  #checkEnd(
    end: Standing,
    wanted: readonly number[],
    revision: Revision | undefined,
    checkpoints: readonly number[],
    evaluations: readonly number[],
  ): void {
    const { faults, keys } = this.#objects;
    const valOnly = revision?.recipe.trainer.val_only === true;
    if (!valOnly && !wanted.includes(end.position))
      faults.equal(keys.terms, 'iterations of a completed run:', wanted[0], end.position);
    if (this.#pending)
      faults.add(
        keys.terms,
        'no batch that waits for its update: the run is completed',
        `one after iteration ${end.position}`,
      );
    if (!checkpoints.includes(end.position))
      faults.add(
        keys.checkpoints,
        `a checkpoint of iteration ${end.position}: the run is completed`,
        `those of ${checkpoints.join(', ') || 'none'}`,
      );
    if (revision?.inputs.validation !== undefined && !valOnly && !evaluations.includes(end.position)) {
      faults.add(
        keys.terms,
        `a validation of iteration ${end.position}: the run is completed`,
        `those of ${evaluations.join(', ') || 'none'}`,
      );
    }
  }
}
