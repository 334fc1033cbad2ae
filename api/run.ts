/** One run, for programs: what `petrel <command> <run>` does. */
import { join, resolve } from 'node:path';
import type { RunId } from '../core/ids.ts';
import { actorOf } from '../core/records/components.ts';
import type { LogLine } from '../core/wire/messages.ts';
import type { FeedPlace } from '../core/run-feed.ts';
import type { DesiredState, RunState } from '../core/run-states.ts';
import { exportPolicy } from './checkpoints/export.ts';
import type { ExportDtype } from './checkpoints/export.ts';
import { listCheckpoints } from './checkpoints/list.ts';
import type { CheckpointRow } from './checkpoints/list.ts';
import type { ApiContext } from './context.ts';
import { verifyLedger } from './ledger/verify.ts';
import type { LedgerVerdict } from './ledger/verdict.ts';
import { requestRunState } from './runs/desired-state.ts';
import type { FoundRun } from './stores/find.ts';
import { followRun } from './runs/follow.ts';
import { followFeed } from './runs/run-feed.ts';
import type { FeedOptions } from './runs/run-feed.ts';
import type { RunProgress } from './runs/follow.ts';
import { readSamples } from './runs/read-samples.ts';
import type { SampleRequest } from './runs/read-samples.ts';
import type { SampleView } from './runs/samples.ts';
import { LogReader } from './runs/log-lines.ts';
import { forkRun } from './runs/fork.ts';
import type { ForkRequest } from './runs/fork.ts';
import { metricRows } from './runs/metric-rows.ts';
import type { MetricRow } from './runs/metric-rows.ts';
import { runOutcome } from './runs/outcome.ts';
import type { RunOutcome } from './runs/outcome.ts';
import { refuseUnlessEnded, refuseWhileForked, removeRun } from './runs/removal.ts';
import { resumeRun } from './runs/resume.ts';
import type { ResumeRequest } from './runs/resume.ts';
import { tokenisedBy } from './runs/row-tokens.ts';
import { runSummary } from './runs/summary.ts';
import type { RunSummary } from './runs/summary.ts';

export interface ExportRequest {
  /** A folder that is empty or not there yet. */
  readonly folder: string;
  /** The policy after this iteration; left out: the newest checkpoint's. */
  readonly iteration?: number;
  /** auto: as the base model is stored. */
  readonly dtype?: ExportDtype;
  /** A trained adapter goes into the weights of its base. */
  readonly merged?: boolean;
}

export interface ExportedPolicy {
  readonly iteration: number;
  /** SHA-256 tree digest of the weights. */
  readonly weightsDigest: string;
  readonly dtype: 'float32' | 'bfloat16';
  readonly folder: string;
}

export class Run {
  readonly #found: FoundRun;
  readonly #context: ApiContext;

  constructor(found: FoundRun, context: ApiContext) {
    this.#found = found;
    this.#context = context;
  }

  get id(): RunId {
    return this.#found.runId;
  }

  /** Where the run stands, from the store alone. */
  summary(): Promise<RunSummary> {
    return runSummary(this.#found);
  }

  /**
   * Calls `onProgress` whenever something may have changed, until the run ends or pauses, or the signal comes. Resolves
   * with the last state that it saw.
   */
  async follow(onProgress: (progress: RunProgress) => void, signal?: AbortSignal): Promise<RunState> {
    const paused = new AbortController();
    return followRun(this.#found.log, this.#context, {
      signal: signal === undefined ? paused.signal : AbortSignal.any([signal, paused.signal]),
      onProgress,
      onState: (state) => {
        if (state === 'paused') paused.abort();
      },
    });
  }

  /**
   * Pushes what is committed from a place on, in order, each once, until the run ends or the signal comes. Resolves
   * with the place where it stopped, from which a later call goes on.
   */
  feed(options: FeedOptions): Promise<FeedPlace> {
    return followFeed(this.#found.log, this.#context, options);
  }

  /** The run's newest checkpoint, validation accuracy before and after, and what bought instances have cost. */
  outcome(): Promise<RunOutcome> {
    return runOutcome(this.#found.log, this.#context);
  }

  /** Ascending by iteration. `last`: only the newest ones. */
  metrics(last?: number): Promise<MetricRow[]> {
    return metricRows(this.#found.log, last);
  }

  /**
   * Prompts, responses and rewards of an iteration or a validation, the newest unless `iteration` is given. Throws
   * TerminalError `NotFound` for one that is not there.
   */
  samples(request: SampleRequest = {}): Promise<SampleView[]> {
    return readSamples(this.#found, request, this.#context);
  }

  /** The newest stored log lines, ordered by time. */
  logLines(count: number): Promise<LogLine[]> {
    return new LogReader(this.#found.log.store, this.id).newest(count);
  }

  /** Ascending by iteration. */
  checkpoints(): Promise<CheckpointRow[]> {
    return listCheckpoints(this.#found.log);
  }

  /** pause: after the current iteration, processes stay. stop: with a checkpoint. cancel: where it is. */
  async request(desired: Exclude<DesiredState, 'run'>): Promise<void> {
    await requestRunState(this.#found, desired, this.#context);
  }

  /** Continues it, from its end or from an earlier iteration, with its own recipe or a changed one. */
  async resume(request: ResumeRequest = {}): Promise<void> {
    await resumeRun(this.#found, request, this.#context);
  }

  /** Another run that begins with a state of this one. */
  async fork(request: ForkRequest = {}): Promise<Run> {
    return new Run((await forkRun(this.#found, request, this.#context)).run, this.#context);
  }

  /**
   * Reads every record again and proves that each sample was used once or is listed as dropped. `deep`: tensors, too.
   */
  verify({ deep = false } = {}): Promise<LedgerVerdict> {
    const { runId, log } = this.#found;
    return verifyLedger(log.store, runId, {
      deep,
      say: this.#context.notice,
      tokenise: tokenisedBy(log.store, join(this.#context.home, 'cache')),
    });
  }

  /** Writes a policy as a Hugging Face folder. */
  async export({ folder, iteration, dtype, merged }: ExportRequest): Promise<ExportedPolicy> {
    const into = resolve(this.#context.cwd, folder);
    const { manifest, dtype: written } = await exportPolicy(
      this.#found.log,
      { folder: into, iteration, ...(dtype && { dtype }), ...(merged && { merged }) },
      this.#context,
    );
    return {
      iteration: manifest.iteration,
      weightsDigest: actorOf(manifest.components).weightsDigest,
      dtype: written,
      folder: into,
    };
  }

  /** Deletes a run that has ended. Throws TerminalError `Conflict` for others, and while a fork still needs it. */
  async remove(): Promise<void> {
    const summary = await runSummary(this.#found);
    refuseUnlessEnded(summary);
    await refuseWhileForked(this.#found);
    await removeRun(this.#found, summary, new Date());
  }
}
