/** What a sampler of the user's own says after a batch (core/rl/own/sampler.ts). */
import type { Counters } from '../../../core/records/schema.ts';
import type { AdvantageInput } from '../../../core/wire/jobs/index.ts';
import { encodeSampling, lastSampling } from '../../../core/wire/own-sampler.ts';
import { getJsonBlob, putJsonBlob } from '../../../log/objects/blobs.ts';
import { groupResults } from './curriculum.ts';
import type { EngineHost } from '../host/host.ts';
import type { JobContext } from '../job/context.ts';
import type { ScoredDraws } from '../samples/samples.ts';

/** Stores its answer; the controllers that name it. Nothing without a sampler. */
export async function samplingOfBatch(
  host: EngineHost,
  input: AdvantageInput,
  context: JobContext,
  parts: readonly ScoredDraws[],
): Promise<Counters['controllers']> {
  const { sampler, train, trainRows } = input.inputs;
  if (sampler === undefined) return {};
  const { runId } = context;
  const store = await host.store(context.store);
  const last = await lastSampling(
    (digest) => getJsonBlob(store, runId, digest),
    { sampler, train, trainRows },
    input.before,
  );
  const results = parts
    .flatMap((part) => groupResults(part, 'score', trainRows))
    .map(({ row, epoch, values }) => ({ row, pass: epoch, scores: values }));
  const { iteration, parentState, algorithm } = input;
  const [seed] = algorithm.seed;
  const next = await host.own.sampling(store, runId, sampler, {
    seed,
    iteration,
    rows: trainRows,
    results,
    state: last.state,
  });
  const blob = await putJsonBlob(
    store,
    runId,
    encodeSampling(next, { iteration, parentState, module: sampler.module, train }),
  );
  return { sampler: { blob } };
}
