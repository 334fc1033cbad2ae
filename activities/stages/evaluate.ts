import { runKinds } from '../../core/run-kinds.ts';
import { keys } from '../../core/records/keys.ts';
import { evalRecord } from '../../core/records/schema.ts';
import { measureOf } from '../../core/validation-measure.ts';
import { drawsIn, parseScoreTable } from '../../core/wire/score-table.ts';
import type { ScoreTable } from '../../core/wire/score-table.ts';
import { comparedPairs } from '../evaluation/compared-pairs.ts';
import { evaluation } from '../evaluation/evaluation.ts';
import { recordWriter } from '../term/record-writer.ts';
import type { RunRef } from '../term/run-context.ts';
import { samplesPerDraw } from '../settings.ts';
import { withScoredRollouts } from '../sampling/scored-rollouts.ts';
import type { ScoredRollout } from '../scored-jobs.ts';
import type { At } from '../sampling/rollouts.ts';
import { beginStage, besideLook } from './begin-stage.ts';
import type { StageServices } from '../services.ts';

interface Scored {
  readonly scored: readonly ScoredRollout[];
  readonly tables: readonly ScoreTable[];
}

/** Validates the policy at the head. Does nothing when the run has no validation rows. */
export async function evaluate(services: StageServices, ref: RunRef): Promise<{ readonly accuracy: number | null }> {
  const { ports, contexts } = services;
  const stage = await beginStage(contexts, ref);
  const { context, head } = stage;
  if (context.inputs.validation === undefined) return { accuracy: null };
  const { validation } = runKinds[context.recipe.kind];
  const n = validation === 'pairs' ? 1 : samplesPerDraw(context.recipe, 'validate');
  const { record, size } = await besideLook(services, stage, async (signal) => {
    if (validation === 'pairs') {
      const record = await comparedPairs(services, { context, head, signal });
      return { record, size: `${record.questions} pairs` };
    }
    const { scored, tables } = await scoredTables(services, { context, head, signal });
    return { record: await evaluation(ref, head, scored, tables, n), size: sizeText(tables, n) };
  });
  const decided = await ports.decide(
    context.log.store,
    keys.evaluation(ref.runId, head.term, head.position),
    evalRecord,
    { ...record, writer: recordWriter(ports) },
    (other) => other.weightsDigest === record.weightsDigest,
  );
  ports.committed(context.log, head.position);
  const { accuracy, metrics } = decided.record;
  ports.say(
    ref.runId,
    'info',
    `validation of policy ${head.position}: ${measureOf(metrics)} ${accuracy.toFixed(4)} on ${size}`,
  );
  return { accuracy };
}

function sizeText(tables: readonly ScoreTable[], n: number): string {
  const sizes = tables.flatMap((table) => drawsIn(table, n).map(([start, end]) => end - start));
  const [least, most] = [Math.min(...sizes), Math.max(...sizes)];
  const each = most === 1 ? '' : `, ${least === most ? most : `${least} to ${most}`} responses each`;
  return `${sizes.length} questions${each}`;
}

function scoredTables(services: StageServices, at: At): Promise<Scored> {
  const { store, runId } = at.context.log;
  const table = async ({ scores }: ScoredRollout) =>
    parseScoreTable(await services.ports.getJsonBlob(store, runId, scores), scores);
  return withScoredRollouts(services, at, 'validate', async (scored) => ({
    scored,
    tables: await Promise.all(scored.map((one) => table(one))),
  }));
}
