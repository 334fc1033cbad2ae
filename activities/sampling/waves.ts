/**
 * Dynamic sampling: groups whose samples do not differ are filtered, and other prompts are sampled until the batch is
 * full (core/rl/filter-groups.ts). Whole waves of `data.gen_batch_size` prompts are sampled, and whether there is
 * another one follows from the scores of the ones before. So every attempt, and every process, samples the same
 * prompts.
 */
import { PauseError } from '../../core/errors.ts';
import type { Digest } from '../../core/ids.ts';
import { mostWaves, promptsPerWave } from '../../core/recipe/index.ts';
import { reasonToFilter } from '../../core/rl/filter-groups.ts';
import { drawsIn, numbersNamed, parseScoreTable } from '../../core/wire/score-table.ts';
import type { Purpose } from './rollout-jobs.ts';
import { filterMetric, samplesPerDraw } from '../settings.ts';
import type { StageServices } from '../services.ts';
import type { At } from './rollouts.ts';

/** The waves of one iteration, or of a validation, which has one. */
export class Waves {
  readonly #ports: StageServices['ports'];
  readonly #at: At;
  readonly #metric: string | undefined;
  /** Groups that can be trained on. */
  #usable = 0;
  #counted = 0;
  /** Number of the current wave. */
  wave = 0;

  constructor({ ports }: StageServices, at: At, purpose: Purpose) {
    this.#ports = ports;
    this.#at = at;
    this.#metric = purpose === 'train' ? filterMetric(at.context.recipe) : undefined;
  }

  /**
   * Resolves with true, in the next wave, while there are too few groups. `scored`: everything so far.
   * @throws PauseError `TooFewGroups` after the last wave.
   */
  async needsAnother(scored: readonly { readonly scores: Digest }[]): Promise<boolean> {
    if (this.#metric === undefined) return false;
    for (const { scores } of scored.slice(this.#counted))
      this.#usable += await this.#usableGroups(this.#metric, scores);
    this.#counted = scored.length;
    const { head, context } = this.#at;
    const { recipe, inputs, log } = context;
    const [wanted, most] = [recipe.data.train_batch_size, mostWaves(recipe, inputs.trainRows)];
    if (this.#usable >= wanted) return false;
    this.wave += 1;
    const state = `iteration ${head.position + 1}: ${this.#usable} of ${wanted} groups have samples that differ in ${this.#metric}`;
    if (this.wave >= most) throw tooFewGroups(log.runId, `${state}, after sampling ${most} times`, most);
    this.#ports.say(log.runId, 'info', `${state}; sampling ${promptsPerWave(recipe)} other prompts`);
    return true;
  }

  async #usableGroups(metric: string, scores: Digest): Promise<number> {
    const { recipe, log } = this.#at.context;
    const table = parseScoreTable(await this.#ports.getJsonBlob(log.store, log.runId, scores), scores);
    const repair = `petrel resume ${log.runId} algorithm.filter_groups.metric=score --accept`;
    const values = numbersNamed(table, metric, `choose one that every result has: ${repair}`);
    const draws = drawsIn(table, samplesPerDraw(recipe, 'train'));
    return draws.filter((range) => reasonToFilter(values.slice(...range), metric) === undefined).length;
  }
}

function tooFewGroups(runId: string, message: string, most: number): PauseError {
  return new PauseError('TooFewGroups', message, {
    where: runId,
    hint: `allow more: petrel resume ${runId} algorithm.filter_groups.max_num_gen_batches=${2 * most} --accept ; or train on prompts that are neither too easy nor too hard`,
  });
}
