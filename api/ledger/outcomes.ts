/**
 * Checks that every draw has exactly one outcome. Draws are numbered from 0 up to the cursor. Each draw is in exactly
 * one batch, in ascending order, or is skipped by a term. Each reads the dataset row that the seed gives. Each place in
 * a batch is used by one sample.
 */
import { DrawRows } from './draw-rows.ts';
import type { Objects } from './objects.ts';
import type { Batch, LedgerDraw, Revision, Update } from './records.ts';
import type { Branch } from './terms.ts';
import type { OutcomeCounts } from './verdict.ts';

/** Samples of a draw whose responses come with its row: one, or a pair. */
const samplesOf: Readonly<Record<string, number>> = { sft: 1, dpo: 2, rm: 2 };

/** Does a batch take every draw that its term does not skip? Recipes of older versions do not say. */
const choosesNothing = ({ recipe: { data, algorithm } }: Revision): boolean =>
  data.curriculum?.enable === false &&
  (data.sampler ?? null) === null &&
  (algorithm.adv_estimator !== 'spo' || (data.gen_batch_size ?? null) === null);

export class DrawOutcomes {
  readonly #objects: Objects;
  readonly counts: OutcomeCounts = { trained: 0, filtered: 0, failed: 0, surplus: 0, stale: 0, skipped: 0 };
  samplesTrained = 0;
  /** Draws that a term skips, as half-open ranges. Inherited ranges are repeated. */
  readonly #skipped: { readonly start: number; readonly end: number }[] = [];
  #first = 0;
  #next = 0;
  /** Rows by revision; only the revision of the last request is kept. */
  #rows: { readonly revision: Revision; readonly of: DrawRows } | undefined;

  constructor(objects: Objects) {
    this.#objects = objects;
  }

  /** The number of draws that have an outcome so far. */
  get draws(): number {
    return this.#next - this.#first;
  }

  /** A fork checks only its own draws: the earlier ones belong to the run it was forked from. */
  startAt(cursor: number): void {
    this.#first = this.#next = cursor;
  }

  /** A term may skip only draws that have no outcome yet. */
  begin({ term, key }: Branch): void {
    for (const [start = 0, end = 0] of term.skippedDraws) {
      if (start < this.#next)
        this.#objects.faults.add(
          key,
          `to skip draws from ${this.#next} on, which have no outcome yet`,
          `draw ${start}, which has one`,
        );
      this.#skipped.push({ start, end });
    }
  }

  /** Checks a batch and its update, which may be missing or damaged. */
  add(batch: Batch, update: Update | undefined, revision: Revision | undefined, key: string): void {
    const { faults } = this.#objects;
    if (batch.before.cursor !== this.#next) {
      faults.add(
        key,
        `draws from ${this.#next} on, the first one without an outcome`,
        `a cursor at ${batch.before.cursor}`,
      );
      this.#next = batch.before.cursor;
    }
    this.#passOver(batch, revision, key);
    for (const draw of batch.draws) this.#draw(draw, key, revision);
    this.#skipUpTo(batch.after.cursor);
    faults.equal(key, 'after.cursor, the first draw without an outcome:', this.#next, batch.after.cursor);
    this.#next = batch.after.cursor;
    this.#places(batch, key);
    this.#count(batch, update);
  }

  /** Draws that a curriculum leaves out, or the estimator spo, count as skipped. */
  #passOver({ passedOver = [], before, after }: Batch, revision: Revision | undefined, key: string): void {
    const { faults } = this.#objects;
    if (passedOver.length > 0 && revision !== undefined && choosesNothing(revision))
      faults.add(key, 'no draws passed over: the recipe chooses no prompts', `${passedOver.length} ranges`);
    for (const [start = 0, end = 0] of passedOver) {
      if (start < before.cursor || end > after.cursor || start >= end)
        faults.add(key, `passed-over draws from ${before.cursor} to ${after.cursor}`, `${start} to ${end}`);
      else this.#skipped.push({ start, end });
    }
  }

  #draw(draw: LedgerDraw, key: string, revision: Revision | undefined): void {
    const { faults } = this.#objects;
    this.#skipUpTo(draw.draw);
    if (draw.draw < this.#next) faults.add(key, `draw ${this.#next}`, `draw ${draw.draw} a second time`);
    else if (draw.draw > this.#next) faults.add(key, `an outcome for draw ${this.#next}`, `draw ${draw.draw} next`);
    if (this.#rangeOf(draw.draw) !== undefined)
      faults.add(key, `no outcome for draw ${draw.draw}: a term skips it`, `outcome ${draw.fate}`);
    this.#next = Math.max(this.#next, draw.draw + 1);
    if (revision === undefined) return;
    faults.equal(key, `row of draw ${draw.draw}`, this.#rowOf(draw.draw, revision), draw.row);
    const { kind, rollout } = revision.recipe;
    faults.equal(key, `samples of draw ${draw.draw}:`, samplesOf[kind] ?? rollout.n, draw.samples.length);
  }

  /** Moves past the draws below `limit` that terms skip. */
  #skipUpTo(limit: number): void {
    for (
      let range = this.#rangeOf(this.#next);
      range !== undefined && this.#next < limit;
      range = this.#rangeOf(this.#next)
    ) {
      const to = Math.min(range.end, limit);
      this.counts.skipped += to - this.#next;
      this.#next = to;
    }
  }

  #rangeOf(draw: number): { readonly start: number; readonly end: number } | undefined {
    return this.#skipped.find(({ start, end }) => start <= draw && draw < end);
  }

  /** Samples use the places 0, 1, 2 … of the batch, each once. Only draws that are trained on have samples. */
  #places({ draws }: Batch, key: string): void {
    const { faults } = this.#objects;
    const used = new Set<number>();
    for (const { draw, fate, reason, samples } of draws) {
      const places = samples.filter((one) => typeof one === 'number');
      for (const place of places) {
        if (used.has(place))
          faults.add(key, `place ${place} of the batch used by one sample`, `draw ${draw} uses it a second time`);
        used.add(place);
      }
      if (fate === 'trained' && places.length === 0)
        faults.add(key, `a sample of draw ${draw}, which was trained`, 'none');
      if (fate !== 'trained' && places.length > 0)
        faults.add(key, `no sample of draw ${draw}, whose outcome is ${fate}`, `places ${places.join(', ')}`);
      if (fate !== 'trained' && !reason) faults.add(key, `a reason why draw ${draw} was ${fate}`, 'none');
    }
    for (let place = 0; place < used.size; place++) {
      if (!used.has(place))
        return faults.add(
          key,
          `the places 0 to ${used.size - 1} of the batch, each used once`,
          `place ${place} is used by no draw`,
        );
    }
  }

  #count({ draws, decision }: Batch, update: Update | undefined): void {
    const leftOut = decision === 'skip' || update?.outcome === 'skipped';
    for (const { fate, samples } of draws) {
      this.counts[fate === 'trained' && leftOut ? 'skipped' : fate]++;
      if (update?.outcome === 'applied') this.samplesTrained += samples.filter((one) => typeof one === 'number').length;
    }
  }

  #rowOf(draw: number, revision: Revision): number {
    if (this.#rows?.revision !== revision) {
      const { recipe, inputs } = revision;
      this.#rows = {
        revision,
        of: new DrawRows({
          rows: inputs.trainRows,
          seed: recipe.data.seed ?? recipe.seed,
          shuffle: recipe.data.shuffle,
        }),
      };
    }
    return this.#rows.of.rowOf(draw);
  }
}
