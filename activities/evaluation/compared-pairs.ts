/** The validation of runs that learn pairs: which of the two responses the model at the head prefers. */
import { tokensOfPass } from '../../core/recipe/pass.ts';
import { PauseError } from '../../core/errors.ts';
import { queueOf } from '../../core/records/profile-ids.ts';
import { recordFormat } from '../../core/records/schema.ts';
import type { EvalRecord } from '../../core/records/schema.ts';
import { parseScoreTable } from '../../core/wire/score-table.ts';
import type { JobRequest, WaitOptions } from '../../core/ports/jobs.ts';
import { liveNote } from '../live-note.ts';
import type { At } from '../sampling/rollouts.ts';
import { trains } from '../settings.ts';
import { seconds, spanOf } from '../spans.ts';
import type { StageServices } from '../services.ts';
import { metricsOf, promptsIn } from './validation-prompts.ts';

/** Evaluates pairs: `accuracy` is the share of pairs whose chosen response is preferred. */
export async function comparedPairs({ ports, recompute }: StageServices, at: At): Promise<Omit<EvalRecord, 'writer'>> {
  const { context, head, signal } = at;
  const { store, runId } = context.log;
  const onProgress: WaitOptions['onProgress'] = (progress, queued) =>
    ports.live(runId, liveNote('evaluate', head.position, progress, queued));
  const request = requestOf(at);
  for (;;) {
    const result = await recompute.run(request, { signal, onProgress });
    const { jobId, output } = result;
    try {
      const table = parseScoreTable(await ports.getJsonBlob(store, runId, output.scores), output.scores);
      const prompts = promptsIn(table, 1);
      if (prompts.length === 0)
        throw new PauseError('NothingValidated', 'the validation has no pairs', { where: runId });
      return {
        format: recordFormat,
        runId,
        term: head.term,
        iteration: head.position,
        weightsDigest: head.weightsDigest,
        questions: prompts.length,
        failed: 0,
        accuracy: table.scores.reduce<number>((sum, score) => sum + (score ?? 0), 0) / prompts.length,
        metrics: await metricsOf(prompts),
        timings: seconds('timing_s/testing', spanOf('compare', result)),
        results: [jobId],
      };
    } catch (error) {
      if (!recompute.lost(error, [{ fact: output.scores, request, jobId }])) throw error;
    }
  }
}

function requestOf({ context, head }: At): JobRequest<'compare'> {
  const { log, inputs, recipe } = context;
  const { profile } = head;
  return {
    stage: 'compare',
    runId: log.runId,
    at: { term: head.term, iteration: head.position },
    store: log.store,
    profile: queueOf(profile),
    needs: recipe.fleet.needs.trainer,
    input: {
      kind: recipe.kind === 'rm' ? 'rm' : 'dpo',
      position: head.position,
      state: head.stateDigest,
      model: inputs.model,
      reference: inputs.reference ?? inputs.model,
      profile,
      ...trains(recipe),
      dataset: inputs.validation ?? inputs.train,
      rows: inputs.validationRows ?? 0,
      beta: recipe.algorithm.dpo_beta,
      maxTokensPerMicroBatch: tokensOfPass(recipe),
    },
  };
}
