/** The four stages of an iteration, and the validation: each one object in, one small object out. */
import { damage, isLostBlob, logHole } from '../core/damage.ts';
import { errorToJson } from '../core/errors.ts';
import { isDue, isValidationDue } from '../core/recipe/index.ts';
import { keys } from '../core/records/keys.ts';
import { batchRecord, evalRecord, recordFormat, updateRecord } from '../core/records/schema.ts';
import type { BatchRecord, UpdateRecord } from '../core/records/schema.ts';
import type { DesiredState } from '../core/run-states.ts';
import { measureOf } from '../core/validation-measure.ts';
import type { ScoreTable } from '../core/wire/jobs.ts';
import { badStepsPause, liveNote } from './head.ts';
import type { ActivityPorts } from './ports.ts';
import { adoptedBatch } from './adopted-batch.ts';
import { advantageJob } from './advantage-job.ts';
import type { Recompute } from './recompute.ts';
import { recordWriter } from './run-context.ts';
import type { RunContext, RunContexts, RunRef } from './run-context.ts';
import { headOf, sampling } from './sampling.ts';
import type { ScoredRollout } from './sampling.ts';
import { poisonBatch } from './poison.ts';
import { evaluation } from './evaluation.ts';
import { samplesPerDraw } from './settings.ts';
import { batchTimings, updateTimings } from './stage-timings.ts';
import type { JobRequest, WaitOptions } from '../infra/nats/dispatcher.ts';
import type { Head } from '../infra/store/run-log.ts';

export interface UpdateSummary {
  readonly position: number;
  readonly wish: DesiredState;
  readonly evaluationDue: boolean;
}

export function stageActivities(ports: ActivityPorts, contexts: RunContexts, recompute: Recompute) {
  const sample = sampling(ports, recompute);
  return {
    /** Responses for every draw of the iteration. */
    async rollout(ref: RunRef): Promise<{ readonly samples: number }> {
      const { context, head } = await headOf(contexts, ref);
      if ((await ports.batchToAdopt(context.log, head)) !== undefined) return { samples: 0 };
      const results = await ports.whileHeartbeating((signal) => sample.rollouts(context, head, 'train', signal));
      return { samples: results.reduce((sum, result) => sum + result.output.samples, 0) };
    },

    /** Scores of every response; started together with rollout. */
    async reward(ref: RunRef): Promise<{ readonly failed: number }> {
      const { context, head } = await headOf(contexts, ref);
      if ((await ports.batchToAdopt(context.log, head)) !== undefined) return { failed: 0 };
      const scored = await ports.whileHeartbeating((signal) =>
        sample.scored(context, head, 'train', signal, async (all) => all),
      );
      return { failed: scored.reduce((sum, part) => sum + part.failed, 0) };
    },

    /** From scored samples to the batch record: the decision what iteration k trains on. */
    async advantage(ref: RunRef): Promise<{ readonly batch: string }> {
      const { context, head } = await headOf(contexts, ref);
      if (head.pending !== undefined) return { batch: head.pending.digest };
      const { log, revision } = context;
      const earlier = await ports.batchToAdopt(log, head);
      if (earlier !== undefined) {
        ports.say(
          ref.runId,
          'info',
          `iteration ${head.position + 1}: the batch of term ${earlier.record.term} is applied again`,
        );
        return { batch: await commitBatch(log, adoptedBatch(earlier, head, recordWriter(ports))) };
      }
      const profile = head.termRecord.profile;
      const { scored, output, timings, jobId, endedAt } = await ports.whileHeartbeating((signal) =>
        makeBatch(context, head, signal),
      );
      const record: BatchRecord = {
        format: recordFormat,
        runId: ref.runId,
        term: head.term,
        iteration: head.position + 1,
        parent: head.parent,
        parentState: head.stateDigest,
        revision: revision.revision,
        profile: profile.id,
        tensors: output.tensors,
        oldLogProbs: output.oldLogProbs,
        learningRates: [...output.learningRates],
        loss: output.loss,
        optimizer: output.optimizer,
        results: [...scored.flatMap(({ jobs }) => jobs), jobId],
        draws: [...output.draws],
        before: head.counters,
        after: output.after,
        metrics: output.metrics,
        timings: batchTimings(scored, { timings, ...(endedAt === undefined ? {} : { endedAt }) }, Date.now()),
        decision: 'train',
        writer: recordWriter(ports),
      };
      return { batch: await commitBatch(log, record) };
    },

    /** Applies the committed batch: the update record is the commit. */
    async update(ref: RunRef): Promise<UpdateSummary> {
      const { context, head } = await headOf(contexts, ref, true);
      const { log, recipe, inputs } = context;
      const pending = head.pending;
      if (pending === undefined) {
        // Committed by an earlier attempt of this activity, which may have died before it could say so.
        if (head.counters.badSteps >= recipe.trainer.max_bad_steps)
          throw badStepsPause(ref.runId, head.counters.badSteps, 'see the update record');
        return summary(head.position, context, await desiredStateOf(log));
      }
      const k = head.position + 1;
      const save = isDue(k, recipe.trainer.save_freq) || k === context.iterations;
      const updated = ports.whileHeartbeating((signal) =>
        withBatch(context, head, pending.record, signal, () =>
          recompute.run(
            {
              stage: 'update',
              runId: ref.runId,
              at: { term: head.term, iteration: head.position },
              store: log.store,
              profile: head.termRecord.profile.id,
              input: {
                parentState: head.stateDigest,
                batch: pending.digest,
                model: inputs.model,
                profile: head.termRecord.profile,
                save,
              },
            },
            {
              signal,
              onProgress: (progress, queued) => ports.live(ref.runId, liveNote('update', k, progress, queued)),
            },
          ),
        ),
      );
      const { output, timings } = await updated.catch((error: unknown) => {
        throw poisonBatch(error, ref.runId, k);
      });
      const record: UpdateRecord = {
        format: recordFormat,
        runId: ref.runId,
        term: head.term,
        iteration: k,
        batch: pending.digest,
        parentState: head.stateDigest,
        outcome: output.outcome,
        ...(output.reason === undefined ? {} : { reason: output.reason }),
        stateDigest: output.stateDigest,
        weightsDigest: output.weightsDigest,
        steps: [...output.steps],
        after: output.after,
        metrics: output.metrics,
        timings: updateTimings(pending.record, timings, Date.now()),
        writer: recordWriter(ports),
      };
      const decided = await ports.decide(
        log.store,
        keys.update(ref.runId, head.term, k),
        updateRecord,
        record,
        (other) => other.batch === record.batch,
      );
      sayIteration(ports, decided.record, pending.record);
      if (decided.record.outcome === 'skipped' && output.after.badSteps >= recipe.trainer.max_bad_steps) {
        throw badStepsPause(ref.runId, output.after.badSteps, output.reason);
      }
      return summary(k, context, await desiredStateOf(log));
    },

    /** Validates the policy at the head. Does nothing when it was validated, or has nothing to be validated on. */
    async evaluate(ref: RunRef): Promise<{ readonly accuracy: number | null }> {
      const { context, head } = await headOf(contexts, ref);
      const { log, inputs } = context;
      if (inputs.validation === undefined) return { accuracy: null };
      const { scored, tables } = await ports.whileHeartbeating((signal) =>
        sample.scored(context, head, 'validate', signal, async (scored) => ({
          scored,
          tables: await Promise.all(
            scored.map(async (part) => (await ports.getJsonBlob(log.store, ref.runId, part.scores)) as ScoreTable),
          ),
        })),
      );
      const record = evaluation(ref, head, scored, tables, samplesPerDraw(context.recipe, 'validate'));
      const decided = await ports.decide(
        log.store,
        keys.evaluation(ref.runId, head.term, head.position),
        evalRecord,
        { ...record, writer: recordWriter(ports) },
        (other) => other.weightsDigest === record.weightsDigest,
      );
      ports.say(
        ref.runId,
        'info',
        `validation of policy ${head.position}: ${measureOf(decided.record.metrics)} ${decided.record.accuracy.toFixed(4)} on ${decided.record.questions} questions`,
      );
      return { accuracy: decided.record.accuracy };
    },

    /** The state at the head as a checkpoint. Returns at once when it is there. */
    async checkpoint(ref: RunRef): Promise<{ readonly manifest: string }> {
      const { context, head } = await headOf(contexts, ref);
      return ports.whileHeartbeating((signal) => saved(context, head, signal));
    },
  };

  /** Resolves with the digest of the record that was decided. */
  async function commitBatch({ store, runId }: RunContext['log'], record: BatchRecord): Promise<string> {
    const key = keys.batch(runId, record.term, record.iteration);
    const decided = await ports.decide(store, key, batchRecord, record, (other) => other.parent === record.parent);
    return decided.digest;
  }

  /** What a job said long ago is not believed: a manifest that was lost since is written again. */
  async function saved(
    { log, inputs }: RunContext,
    head: Head,
    signal: AbortSignal,
  ): Promise<{ readonly manifest: string }> {
    const request: JobRequest<'checkpoint'> = {
      stage: 'checkpoint',
      runId: log.runId,
      at: { term: head.term, iteration: head.position },
      store: log.store,
      profile: head.termRecord.profile.id,
      input: {
        iteration: head.position,
        state: head.stateDigest,
        model: inputs.model,
        profile: head.termRecord.profile,
      },
    };
    const onProgress: WaitOptions['onProgress'] = (progress, queued) =>
      ports.live(log.runId, liveNote('checkpoint', head.position, progress, queued));
    for (;;) {
      const { output, jobId } = await recompute.run(request, { signal, onProgress });
      if ((await log.checkpointOf(head.position, head.stateDigest)) !== undefined) return output;
      const lost = damage(
        'MissingRecord',
        keys.checkpoint(log.runId, head.position, head.stateDigest),
        'expected the checkpoint that was saved, found none that can be read',
      );
      if (!recompute.again(request, jobId, lost.message)) throw lost;
    }
  }

  /** Scored samples, and what the advantage job makes of them. */
  function makeBatch(context: RunContext, head: Head, signal: AbortSignal) {
    const learn = async (scored: readonly ScoredRollout[]) => {
      const onProgress: WaitOptions['onProgress'] = (progress, queued) =>
        ports.live(context.log.runId, liveNote('advantage', head.position + 1, progress, queued));
      const request = advantageJob(context, head, scored);
      return { scored, request, ...(await recompute.run(request, { signal, onProgress })) };
    };
    return context.recipe.kind === 'sft' ? learn([]) : sample.scored(context, head, 'train', signal, learn);
  }

  /** Work that reads a committed batch. Lost tensors are made again; they must come out as the record names them. */
  async function withBatch<T>(
    context: RunContext,
    head: Head,
    record: BatchRecord,
    signal: AbortSignal,
    work: () => Promise<T>,
  ): Promise<T> {
    for (;;) {
      try {
        return await work();
      } catch (error) {
        // The samples of an earlier term were drawn with another arithmetic: they cannot be made again.
        if (record.adopted !== undefined || !isLostBlob(error, context.log.runId, record.tensors)) throw error;
        const { request, jobId } = await makeBatch(context, head, signal);
        if (!recompute.again(request, jobId, String(error))) throw error;
        if ((await makeBatch(context, head, signal)).output.tensors !== record.tensors)
          throw logHole(
            context.log.runId,
            head.position,
            keys.blob(context.log.runId, record.tensors),
            errorToJson(error).message,
          );
      }
    }
  }

  function summary(
    position: number,
    context: Awaited<ReturnType<typeof headOf>>['context'],
    wish: DesiredState,
  ): UpdateSummary {
    return {
      position,
      wish,
      evaluationDue: isValidationDue(context.recipe, position, context.iterations),
    };
  }
}

async function desiredStateOf(log: { status(): Promise<{ wish: DesiredState } | undefined> }): Promise<DesiredState> {
  return (await log.status())?.wish ?? 'run';
}

function sayIteration(ports: ActivityPorts, update: UpdateRecord, batch: BatchRecord): void {
  const score = batch.metrics['critic/score/mean'];
  const parts = [
    `iteration ${update.iteration}`,
    score === undefined ? undefined : `reward ${Number(score).toFixed(3)}`,
    `grad norm ${Number(update.metrics['actor/grad_norm'] ?? Number.NaN).toFixed(3)}`,
    update.outcome === 'skipped' ? `skipped: ${update.reason ?? ''}` : undefined,
  ];
  ports.say(
    update.runId,
    update.outcome === 'skipped' ? 'warn' : 'info',
    parts.filter((part) => part !== undefined).join(', '),
  );
}
