/** Finds the iteration or validation of a run whose samples are asked for, and reads them. */
import { join } from 'node:path';
import { TerminalError } from '../../core/errors.ts';
import type { BatchRecord } from '../../core/records/schema.ts';
import type { RunLog } from '../../log/run/run-log.ts';
import type { ApiContext } from '../context.ts';
import { noSuchIteration } from '../no-such-iteration.ts';
import type { FoundRun } from '../stores/find.ts';
import { trainingSamples, validationSamples } from './samples.ts';
import type { SamplePorts, SampleView } from './samples.ts';

export interface SampleRequest {
  /** The iteration; of a validation, the policy version. The newest unless given. */
  readonly iteration?: number | undefined;
  /** Samples of a validation instead of those that were trained on. */
  readonly validation?: boolean;
  /** Only the samples of this draw. */
  readonly draw?: number | undefined;
}

/** Reads samples, in draw order. Throws TerminalError `NotFound` for what is not there. */
export async function readSamples(
  { log }: Pick<FoundRun, 'log'>,
  { iteration, validation = false, draw }: SampleRequest,
  { home }: Pick<ApiContext, 'home'>,
): Promise<SampleView[]> {
  const ports: SamplePorts = { log, cache: join(home, 'cache') };
  const all = validation
    ? await ofValidation(iteration, ports)
    : await trainingSamples(await batchOf(log, iteration), ports);
  const chosen = draw === undefined ? all : all.filter((sample) => sample.draw === draw);
  if (draw !== undefined && chosen.length === 0)
    throw noSuchIteration('draw', draw, [...new Set(all.map((sample) => sample.draw))]);
  return chosen;
}

/** The newest committed batch may have no update yet. */
async function batchOf(log: RunLog, wanted: number | undefined): Promise<BatchRecord> {
  const head = await log.head();
  const pending = head?.pending?.record.decision === 'train' ? head.pending.record : undefined;
  const newest = pending?.iteration ?? head?.position ?? 0;
  const k = wanted ?? newest;
  const first = await log.first();
  if (wanted === undefined && newest <= first)
    throw new TerminalError('NotFound', 'no samples were trained on yet', {
      hint: `what the run does, or why it paused: petrel status ${log.runId}`,
    });
  if (k <= first || k > newest)
    throw noSuchIteration(
      'iteration',
      wanted,
      Array.from({ length: newest - first }, (_, i) => first + i + 1),
    );
  return pending?.iteration === k ? pending : (await log.iteration(k)).batch.record;
}

async function ofValidation(wanted: number | undefined, ports: SamplePorts): Promise<SampleView[]> {
  const evaluations = await ports.log.evaluations.all();
  const chosen = wanted === undefined ? evaluations.at(-1) : evaluations.find(({ iteration }) => iteration === wanted);
  if (chosen === undefined)
    throw noSuchIteration(
      'validation of policy version',
      wanted,
      evaluations.map(({ iteration }) => iteration),
    );
  return validationSamples(chosen, ports);
}
