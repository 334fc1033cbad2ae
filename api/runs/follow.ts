/** Follows a run: its feed or the store shows what is committed, notes of the control process what is being done. */
import { lossIn } from '../../core/given-loss.ts';
import type { RunId } from '../../core/ids.ts';
import { feedStart, keptNews } from '../../core/run-feed.ts';
import type { FeedIteration, FeedValidation, TakenNews } from '../../core/run-feed.ts';
import type { StatusEntry } from '../../core/records/schema.ts';
import { warningsOf, warningWindow } from '../../core/run-warnings.ts';
import type { RunWarning, WarnedIteration } from '../../core/run-warnings.ts';
import { endedStates } from '../../core/run-states.ts';
import type { RunState } from '../../core/run-states.ts';
import { totalIterations } from '../../core/recipe/index.ts';
import { parseRecipe } from '../../core/recipe/index.ts';
import { measureOf } from '../../core/validation-measure.ts';
import type { ValidationMeasure } from '../../core/validation-measure.ts';
import type { LiveMessage } from '../../core/wire/messages.ts';
import { stackName } from '../../infra/stack/index.ts';
import type { RunLog } from '../../log/run/run-log.ts';
import type { ApiContext } from '../context.ts';
import { activityText } from './activity.ts';
import { FollowedFleet } from './follow-fleet.ts';
import type { FollowedMachines } from './follow-fleet.ts';
import { followFeed } from './run-feed.ts';

const lookMs = 200;
/** The time left is estimated from this many newest iterations. */
const iterationsForTimeLeft = 9;
/** The stages that come before the commit of their iteration. */
const madeOfIterations: ReadonlySet<string> = new Set(['rollout', 'reward', 'advantage', 'update']);

/** What is known of a run at a moment. */
export interface RunProgress {
  readonly runId: string;
  readonly state: RunState;
  /** Committed iterations. */
  readonly iteration: number;
  /** Iterations of the whole run. */
  readonly iterations: number;
  /** What the run is doing now: `rollout 37 %`, `waiting: no worker with role trainer`. */
  readonly activity?: string;
  /** Why the run cannot continue, and what to do: the stack is down. */
  readonly stuck?: string;
  /** Mean score of the newest iteration. */
  readonly reward?: number;
  /** Mean scores of the newest iterations, oldest first. */
  readonly rewards?: readonly number[];
  /** Warnings about the newest iterations. */
  readonly warnings?: readonly RunWarning[];
  /** The value of the newest validation, and which metric it is. */
  readonly accuracy?: number;
  readonly validationMeasure?: ValidationMeasure;
  readonly loss?: number;
  /** The metric perf/response_throughput: response tokens of the newest iteration per second of its wall time. */
  readonly tokensPerSecond?: number;
  /** The machines that work for the run, and their cost; absent before it is known. */
  readonly fleet?: FollowedMachines;
  /** Time since the following began. */
  readonly elapsedS: number;
  readonly remainingS?: number;
}

export interface FollowOptions {
  /** Status entries up to this number are ignored: the run was resumed or forked after them. */
  readonly after?: number;
  /** Ends the following; the run continues. */
  readonly signal: AbortSignal;
  /** Called whenever something may have changed, five times a second at least. */
  readonly onProgress: (progress: RunProgress) => void;
  /** Called at each change of state, with the reason when the run paused or failed. */
  readonly onState?: (state: RunState, reason: StatusEntry['reason']) => void;
}

/** Follows a run until it ends or the signal comes. Resolves with the last state that it saw. */
export async function followRun(
  log: RunLog,
  { home }: Pick<ApiContext, 'home'>,
  options: FollowOptions,
): Promise<RunState> {
  const { inputs, recipe } = await log.revision();
  const fleet = new FollowedFleet({ home }, log.runId);
  const view = new RunView(log.runId, totalIterations(parseRecipe(recipe), inputs.trainRows), fleet, options);
  await followFeed(
    log,
    { home },
    {
      from: { ...feedStart, status: options.after ?? feedStart.status },
      most: warningWindow,
      signal: options.signal,
      lookMs,
      take: (news) => view.take(news),
      note: (note) => view.note(note),
      stackIs: (state) => view.stackIs(state, stackName(home)),
      looked: (nc) => {
        view.show();
        fleet.look(nc);
      },
    },
  );
  return view.state;
}

/** What is known so far. */
class RunView {
  readonly #runId: RunId;
  readonly #iterations: number;
  readonly #fleet: FollowedFleet;
  readonly #options: FollowOptions;
  readonly #startedAt = performance.now();
  readonly #seconds: number[] = [];
  #position = 0;
  #lastAt: number | undefined;
  #activity: string | undefined;
  #stack: { readonly state: 'up' | 'down'; readonly here: string } | undefined;
  #owner: string | undefined;
  readonly #rows: WarnedIteration[] = [];
  #warnings: readonly RunWarning[] = [];
  #reward: number | undefined;
  #loss: number | undefined;
  #validations: readonly FeedValidation[] = [];
  #tokensPerSecond: number | undefined;
  #state: RunState = 'queued';
  #reason: StatusEntry['reason'];

  constructor(runId: RunId, iterations: number, fleet: FollowedFleet, options: FollowOptions) {
    this.#runId = runId;
    this.#iterations = iterations;
    this.#fleet = fleet;
    this.#options = options;
  }

  get state(): RunState {
    return this.#state;
  }

  note({ stage, iteration, done, total, queued }: LiveMessage): void {
    // Notes and commits arrive independently: a note may be older than the commit of its iteration.
    if (madeOfIterations.has(stage) && iteration <= this.#position) return;
    this.#activity = queued === undefined ? activityText(stage, { done, total }) : `waiting: ${queued}`;
    this.show();
  }

  /** `here`: the name of this stack. */
  stackIs(state: 'up' | 'down', here: string): void {
    this.#stack = { state, here };
  }

  take({ place, status, owner, wentBackTo, iterations, validations }: TakenNews): void {
    if (status !== undefined) this.#changeState(status.state, status.reason);
    if (place.iteration > this.#position) {
      this.#activity = undefined; // it was about an iteration that is committed now
      this.#fleet.committed();
    }
    // Going back to an earlier iteration makes the later ones void.
    if (wentBackTo !== undefined) {
      this.#rows.splice(0);
      this.#validations = this.#validations.filter((one) => one.iteration < wentBackTo);
    }
    for (const one of iterations) this.#takeIteration(one);
    this.#position = place.iteration;
    this.#owner = owner ?? this.#owner;
    this.#validations = [...this.#validations, ...validations].slice(-keptNews);
    if (iterations.length > 0 || status !== undefined) this.show();
  }

  #takeIteration({ iteration, at, given, batch, update }: FeedIteration): void {
    const ms = Date.parse(at);
    const seconds = this.#lastAt === undefined ? undefined : (ms - this.#lastAt) / 1000;
    this.#lastAt = ms;
    this.#rows.push({ iteration, metrics: { ...batch.metrics, ...update.metrics } });
    if (this.#rows.length > warningWindow) this.#rows.shift();
    this.#warnings = warningsOf(this.#rows);
    this.#reward = finite(batch.metrics['critic/score/mean']);
    this.#loss = given ? finite(lossIn(update.metrics)) : undefined;
    if (seconds !== undefined && seconds > 0) this.#seconds.push(seconds);
    this.#tokensPerSecond = finite(update.timings['perf/response_throughput']);
  }

  /** A run that another stack drives does not need this stack. */
  #isStuck(): boolean {
    const isOurs = this.#owner === undefined || this.#owner === this.#stack?.here;
    return this.#stack?.state === 'down' && isOurs && this.state !== 'paused' && !endedStates.has(this.state);
  }

  #changeState(state: RunState, reason: StatusEntry['reason']): void {
    if (state === this.state && reason?.message === this.#reason?.message) return;
    this.#state = state;
    this.#reason = reason;
    this.#options.onState?.(state, reason);
  }

  show(): void {
    const validation = this.#validations.at(-1);
    const remainingS = timeLeft(this.#seconds, this.#iterations - this.#position);
    this.#options.onProgress({
      runId: this.#runId,
      state: this.state,
      iteration: this.#position,
      iterations: this.#iterations,
      elapsedS: (performance.now() - this.#startedAt) / 1000,
      ...(this.#activity === undefined ? {} : { activity: this.#activity }),
      ...(this.#isStuck() ? { stuck: stackDown } : {}),
      ...(this.#reward === undefined ? {} : { reward: this.#reward }),
      rewards: this.#rows.flatMap(({ metrics }) => finite(metrics['critic/score/mean']) ?? []),
      warnings: this.#warnings,
      ...(validation && { accuracy: validation.accuracy, validationMeasure: measureOf(validation.metrics) }),
      ...(this.#loss === undefined ? {} : { loss: this.#loss }),
      ...(this.#tokensPerSecond === undefined ? {} : { tokensPerSecond: this.#tokensPerSecond }),
      ...(this.#fleet.seen === undefined ? {} : { fleet: this.#fleet.seen }),
      ...(remainingS === undefined ? {} : { remainingS }),
    });
  }
}

const stackDown = 'the local stack is down; petrel up brings it up, and the run continues';

/**
 * Seconds left: the median duration of the newest iterations, times the number of remaining ones. Undefined before the
 * first and after the last.
 */
export function timeLeft(iterationSeconds: readonly number[], iterationsLeft: number): number | undefined {
  const last = iterationSeconds.slice(-iterationsForTimeLeft).sort((a, b) => a - b);
  const median = last[Math.floor(last.length / 2)];
  return median === undefined || iterationsLeft <= 0 ? undefined : median * iterationsLeft;
}

function finite(value: number | string | undefined): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}
