/**
 * The compare stage: which of two given responses does the model at a position prefer? A policy prefers the one whose
 * log-prob has risen more against the reference (the implicit reward of DPO), a reward model the one with the higher
 * score. As in TRL a tie is wrong, so a policy that equals its reference has the accuracy 0.
 */
import { forwardOne } from '../../../core/ports/one-lane.ts';
import { at } from '../../../core/at.ts';
import type { PackedBatch, ScoringModel } from '../../../core/ports/policy.ts';
import type { CompareInput, CompareOutput } from '../../../core/wire/jobs/index.ts';
import type { ScoreTable } from '../../../core/wire/score-table.ts';
import { putJsonBlob } from '../../../log/objects/blobs.ts';
import { padTokenOf } from '../../../models/config.ts';
import type { Sequence } from '../../../models/dataset-rows.ts';
import { readConfigJson } from '../../../models/folder.ts';
import { tokenizerOf } from '../../../models/loaded-tokenizers.ts';
import type { EngineHost } from '../host/host.ts';
import type { JobContext } from '../job/context.ts';
import { byScores, judged, wholeOf } from '../batch/judge.ts';
import type { Given, Judge } from '../batch/judge.ts';
import { rowSequences } from '../samples/row-sequences.ts';
import { packWhole } from '../samples/sequence-ends.ts';

export async function compare(host: EngineHost, input: CompareInput, context: JobContext): Promise<CompareOutput> {
  const folder = await host.modelFolder(context, input.model, 'text');
  const dataset = await host.dataset(context, input.dataset);
  const rows = Array.from({ length: input.rows }, (_, row) => row);
  const pairs = (await rowSequences(dataset, rows, await tokenizerOf(folder), folder)).map(bothOf);
  const state = await host.stateAt(context, input, input.state);
  const judge =
    input.kind === 'rm'
      ? byScores(state.engine, padTokenOf(await readConfigJson(folder)))
      : implicitRewards(
          state.engine,
          await host.frozen('reference', context, input.reference, input.profile),
          input.beta,
        );
  const rewards_S = await judged(judge, pairs.flat(), input.maxTokensPerMicroBatch, (done, total) =>
    context.progress(done, total, 'comparing pairs'),
  );
  const margins = pairs.map((_, g) => at(rewards_S, 2 * g) - at(rewards_S, 2 * g + 1));
  const sources = (await dataset.facts(rows)).map(({ dataSource }) => dataSource);
  const names = [...new Set(sources)];
  const acc = margins.map((margin) => (margin > 0 ? 1 : 0));
  const table: ScoreTable = {
    trajectories: state.tag?.weightsDigest ?? '',
    position: input.position,
    scores: acc,
    reasons: acc.map(() => null),
    columns: { acc, margin: margins },
    sources: { names, samples: sources.map((source) => names.indexOf(source)) },
  };
  const store = await host.store(context.store);
  return { scores: await putJsonBlob(store, context.runId, table), pairs: pairs.length };
}

function bothOf({ prompt, response, rejected }: Sequence, row: number): [Given, Given] {
  if (response === undefined || rejected === undefined) throw new RangeError(`row ${row} is no pair`);
  return [{ prompt, response }, rejected];
}

/** β·(log π − log π_ref), summed over the response. */
function implicitRewards(policy: ScoringModel, reference: ScoringModel, beta: number): Judge {
  return async (responses) => {
    const [own, other] = [await logProbs(policy, responses), await logProbs(reference, responses)];
    return own.map((sum, s) => beta * (sum - at(other, s)));
  };
}

async function logProbs(engine: ScoringModel, responses: readonly Given[]): Promise<Float64Array> {
  const whole = packWhole(responses.map(wholeOf), undefined);
  const positions: number[] = [];
  const owners: number[] = [];
  responses.forEach(({ prompt, response }, s) => {
    const start = at(whole.cuSeqlens, s) + prompt.length;
    for (let t = 0; t < response.length; t++) {
      positions.push(start + t - 1);
      owners.push(s);
    }
  });
  const positions_P = Int32Array.from(positions);
  const batch: PackedBatch = { ...whole, positions_P, targets_P: positions_P.map((p) => at(whole.tokens_N, p + 1)) };
  const { outputs } = await forwardOne(engine, batch, { temperature: 1, wants: ['logProbs'], keep: false });
  const sums_S = new Float64Array(responses.length);
  owners.forEach((s, p) => (sums_S[s] = at(sums_S, s) + at(outputs.logProbs, p)));
  return sums_S;
}
