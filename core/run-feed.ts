/**
 * The feed of a run: what is new in its log since a place in it. A place is made of numbers that the store gives
 * (status entry, term, iteration), so it means the same to every process, before and after a restart. Pure: the rules
 * by which a process that drives the run keeps news, and by which a viewer takes each of them once.
 */
import type { Measured } from './records/metric-columns.ts';
import type { StatusEntry } from './records/schema.ts';

/** A place in the feed. */
export interface FeedPlace {
  /** Number of the newest status entry; 0: none. */
  readonly status: number;
  /** The newest term; 0: none. */
  readonly term: number;
  /** The last committed iteration of the log that this term ends. */
  readonly iteration: number;
  /** The last validated position; −1: none. */
  readonly validated: number;
}

/** The place of a reader that knows nothing of a run, and needs its newest iterations only. */
export const feedStart: FeedPlace = { status: 0, term: 0, iteration: 0, validated: -1 };

/** The place before the first iteration of a run's log: from here on, every iteration comes. */
export const feedWhole: FeedPlace = { ...feedStart, term: 1 };

/** A committed iteration, as its records have it. */
export interface FeedIteration {
  readonly iteration: number;
  readonly term: number;
  /** Time at which its update was committed. */
  readonly at: string;
  /** Its responses came with the rows: it has no scores (core/given-loss.ts). */
  readonly given: boolean;
  readonly batch: Measured;
  readonly update: Measured;
}

export interface FeedValidation extends Measured {
  readonly iteration: number;
  readonly term: number;
  readonly accuracy: number;
}

export type FeedStatus = Pick<StatusEntry, 'n' | 'state' | 'reason'>;

/** What lies between two places. */
export interface News {
  readonly from: FeedPlace;
  readonly to: FeedPlace;
  /**
   * The iterations follow this position. It is less than `from.iteration` where the run went back, and more where older
   * iterations were left out.
   */
  readonly base: number;
  /** The newest entry, when there is one after `from`. */
  readonly status?: FeedStatus | undefined;
  /** The stack that owns the newest term. */
  readonly owner?: string | undefined;
  /** Ascending. An iteration whose records are damaged is left out. */
  readonly iterations: readonly FeedIteration[];
  readonly validations: readonly FeedValidation[];
}

/** What a viewer takes of a message. */
export interface TakenNews {
  readonly place: FeedPlace;
  readonly status?: FeedStatus | undefined;
  readonly owner?: string | undefined;
  /** The run went back to this position: iterations after it are void, and validations from it on. */
  readonly wentBackTo?: number;
  readonly iterations: readonly FeedIteration[];
  readonly validations: readonly FeedValidation[];
  /** False: messages before this one were lost, so the viewer has to ask. */
  readonly isComplete: boolean;
}

/**
 * What is new to a viewer at `place`: messages may be lost, doubled, late and from several processes. `skips`: the
 * viewer has read these news itself and does not want the older iterations that it left out.
 */
export function takeNews(place: FeedPlace, news: News, skips = false): TakenNews {
  const { status, isComplete } = takeStatus(place, news);
  const log = takeLog(place, news, skips || place.term === 0);
  return {
    ...log,
    place: { ...log.place, status: status?.n ?? place.status },
    status,
    isComplete: isComplete && log.isComplete,
  };
}

/** The newest entry counts, so those between are not missed. */
function takeStatus(place: FeedPlace, { to, status }: News): { status?: FeedStatus; isComplete: boolean } {
  if (status !== undefined && status.n > place.status) return { status, isComplete: to.status <= status.n };
  return { isComplete: to.status <= place.status };
}

type TakenLog = Omit<TakenNews, 'status'>;

function takeLog(place: FeedPlace, { from, to, base, owner, iterations, validations }: News, skips: boolean): TakenLog {
  const nothing = { place, iterations: [], validations: [] };
  const isFromHere = from.term === place.term && from.iteration === place.iteration;
  const follows = isFromHere && (skips || base <= place.iteration);
  if (!follows) {
    const isOld =
      to.term < place.term ||
      (to.term === place.term && to.iteration <= place.iteration && to.validated <= place.validated);
    if (isOld) return { ...nothing, isComplete: true };
    // All messages of one term are about one log, so a number names one iteration.
    const overlaps = from.term === to.term && to.term === place.term && base <= place.iteration;
    if (!overlaps) return { ...nothing, isComplete: false };
  }
  const wentBack = follows && base < place.iteration;
  const start = follows ? base : place.iteration;
  const validated = follows ? validatedWith(place, base) : place.validated;
  // The message has the validations after `from`; those before it must have been taken.
  const covers = (follows ? validatedWith(from, base) : from.validated) <= validated;
  return {
    place: {
      status: place.status,
      term: to.term,
      iteration: follows ? to.iteration : Math.max(place.iteration, to.iteration),
      validated: covers ? Math.max(validated, to.validated) : validated,
    },
    owner,
    ...(wentBack && { wentBackTo: base }),
    iterations: iterations.filter(({ iteration }) => iteration > start),
    validations: covers ? validations.filter(({ iteration }) => iteration > validated) : [],
    isComplete: covers,
  };
}

/** A term of the log and the position after which its iterations are. */
export interface FeedTerm {
  readonly term: number;
  readonly from: number;
}

/**
 * The last position that the log has in common with the log that a viewer at `place` has seen. A term begins at a
 * position of the log of its time, so what lies before every later term is common. `terms`: those of the log.
 */
export const commonPosition = ({ term, iteration }: FeedPlace, terms: readonly FeedTerm[]): number =>
  Math.min(iteration, ...terms.flatMap((one) => (one.term > term && term > 0 ? [one.from] : [])));

/**
 * The position up to which validations stay, where the log goes on from `base`: the base may be validated again, by the
 * new term.
 */
export const validatedWith = ({ iteration, validated }: FeedPlace, base: number): number =>
  base < iteration ? Math.min(validated, base - 1) : validated;

/** Newest iterations, and validations, that a book keeps. */
export const keptNews = 64;

/** What the process that drives a run knows of it: the newest part of the feed. */
export class FeedBook {
  #place: FeedPlace = feedStart;
  #status: FeedStatus | undefined;
  #owner: string | undefined;
  #terms: readonly FeedTerm[] = [];
  /** The kept iterations follow this position, the kept validations that one. */
  #base = 0;
  #validatedBase = -1;
  #iterations: readonly FeedIteration[] = [];
  #validations: readonly FeedValidation[] = [];

  get place(): FeedPlace {
    return this.#place;
  }

  /** Takes news that begin at its place. `terms`: those of the log that the news are about. */
  take(news: News, terms: readonly FeedTerm[]): void {
    const taken = takeNews(this.#place, news, true);
    const skips = news.base > this.#place.iteration;
    const back = taken.wentBackTo ?? Number.POSITIVE_INFINITY;
    const before = skips ? [] : this.#iterations.filter(({ iteration }) => iteration <= back);
    const iterations = [...before, ...taken.iterations];
    const validations = [
      ...(skips ? [] : this.#validations).filter(({ iteration }) => iteration < back),
      ...taken.validations,
    ];
    this.#base = skips ? news.base : Math.min(this.#base, back);
    if (skips) this.#validatedBase = (validations[0]?.iteration ?? 0) - 1;
    else this.#validatedBase = Math.min(this.#validatedBase, back - 1);
    const cut = iterations.length - keptNews;
    if (cut > 0) this.#base = iterations[cut - 1]?.iteration ?? this.#base;
    const cutValidations = validations.length - keptNews;
    if (cutValidations > 0) this.#validatedBase = validations[cutValidations - 1]?.iteration ?? this.#validatedBase;
    this.#iterations = iterations.slice(Math.max(0, cut));
    this.#validations = validations.slice(Math.max(0, cutValidations));
    this.#status = taken.status ?? this.#status;
    this.#owner = news.owner ?? this.#owner;
    [this.#place, this.#terms] = [taken.place, terms];
  }

  /**
   * What a viewer at `place` lacks. `older`: more than is kept, so the viewer reads the store. `ahead`: the viewer
   * knows more than this book.
   */
  since(place: FeedPlace): News | 'older' | 'ahead' {
    const to = this.#place;
    const isAhead = place.term > to.term || (place.term === to.term && place.iteration > to.iteration);
    if (isAhead || place.status > to.status) return 'ahead';
    const isNew = place.term === 0;
    const common = commonPosition(place, this.#terms);
    const validated = validatedWith(place, common);
    if (!isNew && (common < this.#base || validated < this.#validatedBase)) return 'older';
    const base = Math.max(common, this.#base);
    return {
      from: place,
      to,
      base,
      status: this.#status !== undefined && this.#status.n > place.status ? this.#status : undefined,
      owner: this.#owner,
      iterations: this.#iterations.filter(({ iteration }) => iteration > base),
      validations: this.#validations.filter(({ iteration }) => iteration > (isNew ? -1 : validated)),
    };
  }
}

/** Do these news say nothing? */
export const isNoNews = ({ from, to }: News): boolean =>
  from.status === to.status &&
  from.term === to.term &&
  from.iteration === to.iteration &&
  from.validated === to.validated;
