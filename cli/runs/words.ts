/** How the state of a run reads. */
import type { Printer } from '../printer/printer.ts';
import type { Style } from '../printer/terminal.ts';
import type { ValidationMeasure } from '../../core/validation-measure.ts';
import type { RunStatus, RunSummary } from '../../api/index.ts';
import { endedStates } from '../../core/run-states.ts';

const styles: Readonly<Partial<Record<RunSummary['state'], Style>>> = {
  running: 'green',
  paused: 'yellow',
  failed: 'red',
};

/** `running`, or with the desired state that is not reached yet: `running, stops soon`. */
function stateText({ state, wish }: Pick<RunSummary, 'state' | 'wish'>): string {
  if (endedStates.has(state) || wish === 'run') return state;
  if (wish === 'pause') return state === 'paused' ? state : `${state}, pauses soon`;
  return `${state}, ${wish === 'stop' ? 'stops' : 'ends'} soon`;
}

export function styledState(run: Pick<RunSummary, 'state' | 'wish'>, printer: Printer): string {
  const style = styles[run.state];
  return style === undefined ? stateText(run) : printer.style(style, stateText(run));
}

/** `accuracy 0.913`, or `score 0.100` where the scorer says of no response whether it is right. */
export function validationText(run: {
  readonly accuracy: number | null;
  readonly validationMeasure: ValidationMeasure | null;
}): string | undefined {
  return run.accuracy === null ? undefined : `${run.validationMeasure ?? 'accuracy'} ${run.accuracy.toFixed(3)}`;
}

/** `12/60`. */
export function iterationText({ iteration, iterations }: Pick<RunSummary, 'iteration' | 'iterations'>): string {
  return iterations === null ? String(iteration) : `${iteration}/${iterations}`;
}

/** The reason may name a better command than a plain resume, which would meet the same scorer again. */
export const resumeCommand = (runId: string, reason: RunSummary['reason']): string =>
  /petrel resume \S+ \S+=\S+ --accept/.exec(reason?.hint ?? '')?.[0] ?? `petrel resume ${runId}`;

/** What to type next, for the state a run is in. */
export function nextCommand({
  runId,
  state,
  reason,
  warnings = [],
  stack,
  foreign,
}: Pick<RunSummary, 'runId' | 'state'> &
  Partial<Pick<RunStatus, 'reason' | 'warnings' | 'stack' | 'foreign'>>): string {
  switch (state) {
    case 'completed':
      if (warnings.length > 0) return `petrel samples ${runId}`;
      return `petrel ckpt export ${runId} --out ./trained`;
    case 'paused':
    case 'stopped':
      return resumeCommand(runId, reason);
    case 'failed':
      return `petrel logs ${runId}, then ${resumeCommand(runId, reason)}`;
    case 'cancelled':
      return `petrel resume ${runId} --from <k>, or petrel rm ${runId}`;
    case 'queued':
    case 'running':
      if (stack === 'down' && foreign !== true) return 'petrel up';
      return `petrel status ${runId} --watch`;
  }
}

/** Text for a run that another stack drives. */
export function elsewhereText(runId: string, owner: string): string {
  return `noted: ${owner} drives it and does this within seconds; when that stack is gone for good, petrel resume ${runId} --accept takes the run over`;
}
