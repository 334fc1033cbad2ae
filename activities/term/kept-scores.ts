/**
 * The scored rollouts of an iteration, from the stage `reward` to `advantage`. They are only in this process's memory:
 * another one finds the same results by their jobs.
 */
import type { Head } from '../../log/run/run-log.ts';
import type { ScoredRollout } from '../scored-jobs.ts';
import type { RunContext } from './run-context.ts';

/** More runs than a machine drives at once. */
const keptRuns = 32;

interface Place {
  readonly context: Pick<RunContext, 'log'>;
  readonly head: Pick<Head, 'term' | 'position'>;
}

const placeOf = ({ term, position }: Place['head']) => `${term}/${position}`;

export class KeptScores {
  /** Maps a run to the rollouts of a position; the oldest is evicted first. */
  readonly #scored = new Map<string, { readonly place: string; readonly scored: readonly ScoredRollout[] }>();

  keep({ context: { log }, head }: Place, scored: readonly ScoredRollout[]): void {
    this.#scored.delete(log.runId);
    this.#scored.set(log.runId, { place: placeOf(head), scored });
    const [oldest] = this.#scored.keys();
    if (this.#scored.size > keptRuns && oldest !== undefined) this.#scored.delete(oldest);
  }

  /** The scored rollouts of this position; undefined when this process has not made them. */
  take({ context: { log }, head }: Place): readonly ScoredRollout[] | undefined {
    const found = this.#scored.get(log.runId);
    this.#scored.delete(log.runId);
    return found?.place === placeOf(head) ? found.scored : undefined;
  }
}
