/**
 * Notes the jobs of each run's iterations as they begin and end, so that the rules of reach-choice.ts can say from how
 * far workers take part. An iteration takes from its first rollout job until its last response is scored.
 */
import { reachLimits } from '../../../core/reach.ts';
import type { JobRequest, JobResult } from '../../../core/ports/jobs.ts';
import type { Stage, StageTypes } from '../../../core/wire/jobs/index.ts';
import { ReachChoice } from './reach-choice.ts';
import type { ReachLimit, ReachVerdict } from './reach-choice.ts';

/** The number of runs that are remembered. */
const mostRuns = 100;

interface RunningIteration {
  readonly iteration: number;
  readonly limit: ReachLimit;
  /** There were others to choose from. */
  readonly isChosen: boolean;
  /** It was neither paused nor resumed in the middle. */
  readonly isWhole: boolean;
  readonly began: number;
  /** The time at which the last job ended so far. */
  ended: number;
  tokens: number;
  /** Its rollout jobs. */
  readonly rollouts: Set<string>;
}

interface KnownRun {
  readonly choice: ReachChoice;
  running?: RunningIteration;
  /** The run has paused since its last iteration began. */
  hasPaused?: boolean;
  /** What the run was told last: the best limit. */
  told?: ReachLimit;
}

/** Called for a run when other workers take part than before, with a sentence for its log. */
export type ReachChanged = (runId: string, text: string) => void;

/** What is read of a job. */
interface AskedJob {
  readonly request: JobRequest<Stage>;
  readonly jobId: string;
}

/**
 * The limits that differ in who takes part, each the lowest that takes the same workers, in ascending order. One alone:
 * there is nothing to choose.
 */
export function limitsAmong(roundTrips: readonly number[]): ReachLimit[] {
  const limits = [...reachLimits, Number.POSITIVE_INFINITY];
  const within = limits.map((limit) => roundTrips.filter((one) => one <= limit).length);
  return limits.filter((_, i) => within[i] !== 0 && within[i] !== within[i - 1]);
}

export class RunReach {
  readonly #changed: ReachChanged;
  readonly #now: () => number;
  /** Runs by their id. The one that was asked for longest ago is forgotten first. */
  readonly #runs = new Map<string, KnownRun>();

  /** `now`: a clock, in ms. */
  constructor(changed: ReachChanged, now: () => number = () => performance.now()) {
    this.#changed = changed;
    this.#now = now;
  }

  /**
   * The longest round trip of a worker that should do the job; undefined: any worker. `roundTrips`: those of the
   * workers that could do its rollouts.
   */
  limitFor({ request, jobId }: AskedJob, roundTrips: () => readonly number[]): ReachLimit | undefined {
    if (request.stage === 'reward') return chosen(this.#runs.get(request.runId)?.running);
    if (request.stage !== 'rollout') return undefined;
    const limits = limitsAmong(roundTrips());
    const run = this.#run(request.runId);
    if (!isTraining(request)) return limited(limits.length < 2 ? undefined : run.choice.best(limits));
    if (run.running?.iteration !== request.at.iteration) {
      this.#judge(run, request.runId);
      this.#begin(run, request.at.iteration, limits);
    }
    run.running?.rollouts.add(jobId);
    return limits.length < 2 ? undefined : chosen(run.running);
  }

  ended({ request, jobId }: AskedJob, { output }: JobResult): void {
    const running = this.#runs.get(request.runId)?.running;
    if (running?.rollouts.has(request.follows ?? jobId) !== true) return;
    running.ended = this.#now();
    if (request.stage === 'rollout') running.tokens += (output as StageTypes['rollout']['output']).responseTokens;
  }

  /** The run pauses or ends: the iteration in which it does takes longer than others. */
  leave(runId: string): void {
    const run = this.#runs.get(runId);
    if (run === undefined) return;
    delete run.running;
    run.hasPaused = true;
  }

  #run(runId: string): KnownRun {
    const run = this.#runs.get(runId) ?? { choice: new ReachChoice() };
    this.#runs.delete(runId);
    this.#runs.set(runId, run);
    const [oldest] = this.#runs.keys();
    if (this.#runs.size > mostRuns && oldest !== undefined) this.#runs.delete(oldest);
    return run;
  }

  /** The iteration before is over. */
  #judge(run: KnownRun, runId: string): void {
    const { running } = run;
    if (running === undefined || running.tokens === 0 || !running.isWhole) return;
    const { limit, began, ended, tokens } = running;
    const verdict = run.choice.ended({ limit, seconds: (ended - began) / 1_000, tokens });
    if (verdict === undefined || run.told === verdict.best) return;
    run.told = verdict.best;
    this.#changed(runId, verdictText(verdict));
  }

  #begin(run: KnownRun, iteration: number, limits: readonly ReachLimit[]): void {
    const limit = run.choice.next(limits);
    const began = this.#now();
    const isWhole = run.hasPaused !== true;
    delete run.hasPaused;
    const isChosen = limits.length > 1;
    run.running = { iteration, limit, isChosen, isWhole, began, ended: began, tokens: 0, rollouts: new Set() };
  }
}

const isTraining = (request: JobRequest<Stage>): boolean =>
  (request.input as StageTypes['rollout']['input']).purpose !== 'validate';

const chosen = (running: RunningIteration | undefined): ReachLimit | undefined =>
  running?.isChosen === true ? limited(running.limit) : undefined;

const limited = (limit: ReachLimit | undefined): ReachLimit | undefined =>
  limit === Number.POSITIVE_INFINITY ? undefined : limit;

function verdictText({ best, bestSeconds, other, otherSeconds }: ReachVerdict): string {
  const [alone, together] = best < other ? [bestSeconds, otherSeconds] : [otherSeconds, bestSeconds];
  const who = `workers with a round trip above ${Math.min(best, other)} ms`;
  const seconds = `${together.toFixed(2)} s with them and ${alone.toFixed(2)} s without`;
  return `${who} ${best < other ? 'take no part for now' : 'take part'}: an iteration takes ${seconds}`;
}
