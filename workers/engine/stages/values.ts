/**
 * The values stage, where the critic is trained by jobs of its own: the critic's values of the batch that the advantage
 * job will make. Both jobs compose the batch and divide it into micro-batches alike, as functions of the same input.
 */
import { componentOf } from '../../../core/records/components.ts';
import type { ValuesInput, ValuesOutput } from '../../../core/wire/jobs/index.ts';
import { putBlob } from '../../../log/objects/blobs.ts';
import { encodeValues } from '../../../models/values.ts';
import { readParts } from '../batch/advantage.ts';
import { layOut } from '../batch/batch-layout.ts';
import { outputsOf } from '../batch/batch-outputs.ts';
import type { EngineHost } from '../host/host.ts';
import type { JobContext } from '../job/context.ts';
import { compose } from '../samples/samples.ts';
import { StageTimer } from '../job/stage-timer.ts';
import { planSteps } from '../batch/step-plan.ts';

export async function values(host: EngineHost, input: ValuesInput, context: JobContext): Promise<ValuesOutput> {
  const { samples } = compose(input, await readParts(host, input, context), context.runId);
  const layout = layOut(samples, planSteps(input, samples));
  const state = await host.stateAt(context, { ...input, model: input.inputs.model }, input.partState);
  const critic = componentOf(state.engines, 'critic');
  const outputs = await new StageTimer(context).time('timing_s/values', () =>
    outputsOf(critic, layout, input.algorithm, ['values'], 'values', context),
  );
  const store = await host.store(context.store);
  return { values: await putBlob(store, context.runId, encodeValues(outputs.values, input)) };
}
