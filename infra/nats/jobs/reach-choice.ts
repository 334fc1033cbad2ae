/**
 * Chooses from how far workers take part in the iterations of a run. A worker with a long round trip helps where
 * sampling takes long, and makes an iteration longer where it is short: its jobs wait for messages and for reads of the
 * store. So the run compares near workers alone with those further away, by the seconds of an iteration for each token
 * that it sampled. What was slower is tried again at times, because models, lengths and networks change. There is no
 * I/O and no clock here (run-reach.ts has them).
 *
 * ```
 *   the best limit ──── another one is due ────▶ that one, for an iteration
 *     ▲    ▲                                       │ or two: the first has to load weights
 *     │    └──── slower: due again when the run ───┤
 *     │          has spent `patience` × its loss   │
 *     └──────── faster: it is the best one now ────┘
 * ```
 */
import { medianOf } from '../../../core/median.ts';

/** The longest round trip of those who take part, ms; Infinity: all do. */
export type ReachLimit = number;

/** An iteration that has ended. */
export interface EndedIteration {
  readonly limit: ReachLimit;
  readonly seconds: number;
  /** Tokens that were sampled in it. */
  readonly tokens: number;
}

/** What a trial has shown, in seconds of an iteration of the trial's tokens. */
export interface ReachVerdict {
  /** The fastest limit now. */
  readonly best: ReachLimit;
  readonly bestSeconds: number;
  /** The one that is slower. */
  readonly other: ReachLimit;
  readonly otherSeconds: number;
}

/** Iterations of a limit whose median counts. */
const mostKept = 5;
/** A first iteration that takes so many times as long as the best limit's needs no second one. */
const hopeless = 2;
/** A limit that has lost is tried again when its loss is one in so many seconds. Each further loss doubles it. */
const firstPatience = 20;
const mostPatience = 640;
/** It is not tried again within so many iterations. */
const leastRest = 8;

/** What is known of a limit. */
interface Tried {
  /** Seconds for each token, in its last iterations. */
  readonly costs: readonly number[];
  /** It is not tried before the run has spent so many seconds. */
  readonly dueAt: number;
  readonly patience: number;
}
const untried: Tried = { costs: [], dueAt: 0, patience: firstPatience };

export class ReachChoice {
  readonly #tried = new Map<ReachLimit, Tried>();
  #best: ReachLimit | undefined;
  #last: ReachLimit | undefined;
  /** Seconds of all iterations. */
  #spent = 0;

  /** The fastest one of these limits, as far as is known: the lowest at first. `limits` is in ascending order. */
  best(limits: readonly ReachLimit[]): ReachLimit {
    if (this.#best !== undefined && limits.includes(this.#best)) return this.#best;
    return [...limits].sort((a, b) => this.#cost(a) - this.#cost(b))[0] ?? Number.POSITIVE_INFINITY;
  }

  /** The limit of the next iteration: the best one, or another one that is due. */
  next(limits: readonly ReachLimit[]): ReachLimit {
    const best = (this.#best = this.best(limits));
    if (this.#of(best).costs.length === 0) return best;
    return limits.find((limit) => limit !== best && this.#of(limit).dueAt <= this.#spent) ?? best;
  }

  /** Gives a verdict when this was a trial that is over. */
  ended(iteration: EndedIteration): ReachVerdict | undefined {
    const { limit, seconds, tokens } = iteration;
    this.#spent += seconds;
    const isFirst = this.#last !== limit;
    this.#last = limit;
    const cost = seconds / Math.max(1, tokens);
    const known = (this.#best ??= limit);
    if (limit === known) {
      if (!isFirst) this.#noteBest(limit, cost);
      return undefined;
    }
    const toBeat = this.#cost(known);
    if (toBeat === Number.POSITIVE_INFINITY) return undefined; // the best one has not been measured yet
    const knownSeconds = toBeat * tokens;
    if (cost < toBeat) {
      this.#prefer(iteration, cost, knownSeconds - seconds);
      return { best: limit, bestSeconds: seconds, other: known, otherSeconds: knownSeconds };
    }
    if (isFirst && cost <= hopeless * toBeat) return undefined;
    this.#postpone(iteration, cost, seconds - knownSeconds);
    return { best: known, bestSeconds: knownSeconds, other: limit, otherSeconds: seconds };
  }

  #of(limit: ReachLimit): Tried {
    return this.#tried.get(limit) ?? untried;
  }

  /** Infinity for a limit that has not been tried. */
  #cost(limit: ReachLimit): number {
    return medianOf(this.#of(limit).costs) ?? Number.POSITIVE_INFINITY;
  }

  /** Another one that was faster than this one is now is tried next. */
  #noteBest(limit: ReachLimit, cost: number): void {
    const known = this.#of(limit);
    this.#tried.set(limit, { ...known, costs: [...known.costs, cost].slice(-mostKept) });
    const now = this.#cost(limit);
    for (const [other, tried] of this.#tried)
      if (other !== limit && this.#cost(other) < now) this.#tried.set(other, { ...tried, dueAt: this.#spent });
  }

  #prefer({ limit, seconds }: EndedIteration, cost: number, gain: number): void {
    if (this.#best !== undefined) this.#rest(this.#best, firstPatience, gain, seconds);
    this.#best = limit;
    this.#tried.set(limit, { ...untried, costs: [cost] });
  }

  #postpone({ limit, seconds }: EndedIteration, cost: number, loss: number): void {
    const { patience } = this.#of(limit);
    this.#tried.set(limit, { ...untried, costs: [cost] });
    this.#rest(limit, patience, loss, seconds);
  }

  #rest(limit: ReachLimit, patience: number, loss: number, seconds: number): void {
    const dueAt = this.#spent + Math.max(patience * loss, leastRest * seconds);
    this.#tried.set(limit, { ...this.#of(limit), dueAt, patience: Math.min(mostPatience, 2 * patience) });
  }
}
