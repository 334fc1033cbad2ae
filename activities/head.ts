/** The state of a run, derived from the store whenever its workflow starts, resumes or was rolled back. */
import { damage, isDamage } from '../core/damage.ts';
import { PauseError, RetryableError } from '../core/errors.ts';
import { keys } from '../core/records/keys.ts';
import { isValidationDue } from '../core/recipe/index.ts';
import { recordFormat, termRecord } from '../core/records/schema.ts';
import type { TermRecord } from '../core/records/schema.ts';
import type { DesiredState, RunState } from '../core/run-states.ts';
import type { ActivityPorts } from './ports.ts';
import { drivenBy } from './ownership.ts';
import type { Recompute } from './recompute.ts';
import { recordWriter } from './run-context.ts';
import type { Head, RunLog } from '../infra/store/run-log.ts';
import type { RunContext, RunContexts, RunRef } from './run-context.ts';
import { engineSettings } from './settings.ts';

export interface RecoveredHead {
  /** 0: no term yet. */
  readonly term: number;
  readonly position: number;
  readonly iterations: number;
  /** A batch is committed and not applied: its update comes first. */
  readonly pending: boolean;
  readonly wish: DesiredState;
  /** The policy at this position is due for validation. */
  readonly evaluationDue: boolean;
  readonly valOnly: boolean;
}

export function headActivities(ports: ActivityPorts, contexts: RunContexts, recompute: Recompute) {
  return {
    async recoverHead(ref: RunRef): Promise<RecoveredHead> {
      ports.dispatcher.runResumed(ref.runId);
      // Read from the store, not from this process's cache: a record may have been lost.
      (await contexts.log(ref)).forget();
      const { context, head } = await contexts.head(ref);
      const hole = await ports.findHole(context.log, head);
      if (hole !== undefined) throw hole;
      await ports.endSweep(context.log, ports.now());
      const status = await context.log.status();
      const position = head?.position ?? (await context.log.run()).origin?.position ?? 0;
      return {
        term: head?.term ?? 0,
        position,
        iterations: context.iterations,
        pending: head?.pending !== undefined,
        wish: status?.wish ?? 'run',
        evaluationDue: await isValidationMissing(context, head, position),
        valOnly: context.recipe.trainer.val_only,
      };
    },

    /** Loads the base model on a trainer, or the state that a fork starts with, and opens the first term. */
    async openTerm(ref: RunRef): Promise<{ readonly term: number }> {
      const { context, head } = await contexts.head(ref);
      if (head !== undefined) return { term: head.term };
      const { log, recipe, inputs } = context;
      const { origin } = await log.run();
      const { output } = await ports.whileHeartbeating((signal) =>
        ports.dispatcher.run(
          {
            stage: 'open',
            runId: ref.runId,
            at: { term: 1, iteration: origin?.position ?? 0 },
            store: log.store,
            profile: 'any',
            input: {
              model: inputs.model,
              engine: engineSettings(recipe),
              ...(origin && { from: { runId: origin.runId, iteration: origin.position, state: origin.stateDigest } }),
            },
          },
          { signal, onProgress: (progress, queued) => ports.live(ref.runId, liveNote('open', 0, progress, queued)) },
        ),
      );
      const record: TermRecord = {
        format: recordFormat,
        runId: ref.runId,
        term: 1,
        ...(origin && { base: { position: origin.position, counters: origin.counters } }),
        startState: output.stateDigest,
        startWeights: output.weightsDigest,
        revision: 1,
        profile: output.profile,
        owner: ports.stack,
        reason: origin === undefined ? 'start' : `fork of ${origin.runId} after iteration ${origin.position}`,
        skippedDraws: origin?.skippedDraws ?? [],
        writer: recordWriter(ports),
      };
      const decided = await ports.decide(log.store, keys.term(ref.runId, 1), termRecord, record, (other) => {
        if (other.owner !== record.owner) throw drivenBy(other, record.owner);
        return other.startState === record.startState;
      });
      if (origin !== undefined) await log.store.remove(keys.pin(origin.runId, ref.runId));
      ports.say(
        ref.runId,
        'debug',
        `opened term 1: ${output.profile.compute}${output.profile.deterministic ? ' deterministic' : ''} on ${output.profile.isa}`,
      );
      return { term: decided.record.term };
    },

    /**
     * Records the run's state, and the reason of a pause or a failure. When another stack drives the run now, only that
     * stack records its state, and a failure here is only logged. Resolves with the desired state after the record.
     */
    async recordState(
      input: RunRef & {
        readonly state: 'running' | 'paused' | 'stopped' | 'completed' | 'failed' | 'cancelled';
        readonly reason?: unknown;
      },
    ): Promise<DesiredState | undefined> {
      const givenUp = ports.beginAttempt();
      const log = await contexts.log(input);
      const term = (await newestIfReadable(log))?.record;
      if (term !== undefined && term.owner !== ports.stack) {
        ports.say(input.runId, 'warn', `${ports.stack} stops driving this run${reasonText(input.reason)}`);
        await ports.dispatcher.cancelJobs(input.runId);
        if (input.state === 'failed') return undefined;
        throw drivenBy(term, ports.stack);
      }
      if (term === undefined) await log.ensureThere();
      // A pause without a reason comes from the user. A later resume by the user is newer and stays.
      const needsPerson = input.state === 'paused' && input.reason !== undefined;
      const { wish } = await whenThereIsRoom(() =>
        ports.appendStatus(
          log,
          {
            state: input.state,
            needsPerson,
            ...endsAsDesired(input.state),
            ...(input.reason === undefined ? {} : { reason: input.reason }),
          },
          ports.now(),
          givenUp,
        ),
      );
      ports.say(input.runId, input.reason === undefined ? 'info' : 'warn', `${input.state}${reasonText(input.reason)}`);
      if (input.state === 'running') recompute.resetFailures(input.runId);
      else if (input.state === 'cancelled' || input.state === 'failed') await ports.dispatcher.cancelJobs(input.runId);
      else ports.dispatcher.releaseLease(input.runId);
      return wish;
    },
  };
}

/**
 * A run is stopped or cancelled only while the user wants that. Otherwise the workflow reads the desired state again.
 */
function endsAsDesired(state: RunState): { readonly onlyIf?: DesiredState } {
  if (state === 'stopped') return { onlyIf: 'stop' };
  return state === 'cancelled' ? { onlyIf: 'cancel' } : {};
}

/** A full disk: Temporal retries until the state can be written. */
async function whenThereIsRoom<T>(write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (error instanceof PauseError && error.code === 'DiskFull')
      throw new RetryableError(error.code, error.message, { cause: error });
    throw error;
  }
}

/** A pause must be recorded even when the term's record is the damaged one. */
async function newestIfReadable(log: RunLog): Promise<Awaited<ReturnType<RunLog['newestTerm']>>> {
  try {
    return await log.newestTerm();
  } catch (error) {
    if (isDamage(error)) return undefined;
    throw error;
  }
}

/** True for a validation that a stop or a crash prevented after its update. */
async function isValidationMissing(
  { log, recipe, inputs, iterations }: RunContext,
  head: Head | undefined,
  position: number,
): Promise<boolean> {
  if (inputs.validation === undefined || !isValidationDue(recipe, position, iterations)) return false;
  return head === undefined || !(await log.isEvaluated(position));
}

export function liveNote(
  stage: string,
  iteration: number,
  progress: { readonly done: number; readonly total: number; readonly note: string } | undefined,
  queued: string | undefined,
) {
  return {
    stage,
    iteration,
    done: progress?.done ?? 0,
    total: progress?.total ?? 0,
    note: progress?.note ?? '',
    ...(queued === undefined ? {} : { queued }),
  };
}

/** Stages come after openTerm, so a missing term record was lost. It never means a new run. */
export function needHead<T>(head: T | undefined, runId: string): T {
  if (head === undefined)
    throw damage('MissingRecord', keys.term(runId, 1), 'expected the record of the first term, found nothing');
  return head;
}

export function badStepsPause(runId: string, badSteps: number, reason: string | undefined): PauseError {
  return new PauseError(
    'TooManyBadSteps',
    `${badSteps} updates in a row took no optimiser step; last: ${reason ?? 'unknown'}`,
    {
      hint: 'Lower actor.optim.lr or fix the data, then run petrel resume',
      where: runId,
    },
  );
}

function reasonText(reason: unknown): string {
  return typeof reason === 'object' && reason !== null && 'message' in reason ? `: ${String(reason.message)}` : '';
}
