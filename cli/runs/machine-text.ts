/** The status of a machine, for people. */
import type { Printer } from '../printer/printer.ts';
import { renderTable, widthFor } from '../printer/table.ts';
import type { MachineStatus, RunSummary } from '../../api/index.ts';
import { instanceTexts } from './fleet-text.ts';
import { reasonText, workerTable } from './status-text.ts';
import { iterationText, nextCommand, styledState, validationText } from './words.ts';

export function machineStatusText({ stack, workers, fleet, left, runs }: MachineStatus, printer: Printer): string {
  const parts = [stackLine(stack, printer)];
  if (stack.away !== undefined) parts.push(printer.style('yellow', awayText(stack.away)));
  const sick = stack.children.filter(({ state }) => state !== 'ready');
  if (sick.length > 0)
    parts.push(
      renderTable(
        sick,
        [
          { head: 'process', value: ({ name }) => name },
          { head: 'state', value: ({ state }) => state },
          { head: 'restarts', value: ({ restarts }) => restarts },
          { head: 'last exit', value: ({ lastExit }) => lastExit, shrink: true },
        ],
        widthFor(printer.stdout),
      ),
    );
  if (workers.length > 0) parts.push(workerTable(workers, printer));
  if (fleet !== undefined) parts.push(...instanceTexts(fleet, printer), ...fleet.notes.slice(0, 5));
  if (left.length > 0) parts.push(left.map(leftText).join('\n'));
  parts.push(runs.length === 0 ? 'no unfinished runs; petrel ls lists all' : runTable(runs, printer));
  for (const run of runs)
    if (run.reason !== undefined) parts.push(`${run.runId}: ${reasonText(run.reason)}\nnext: ${nextCommand(run)}`);
  return parts.join('\n\n');
}

const leftText = ({ host, pool, code, message, at, times }: MachineStatus['left'][number]): string =>
  `${host} of the pool ${pool} cannot work (${at}${times > 1 ? `, ${times} times` : ''}): ${code}: ${message}`;

const awayText = (why: string): string =>
  `machines cannot join: ${why}. Work of this machine goes on, and petrel listens there again when it is back.\npetrel up --listen off forgets the address; petrel up --listen ADDRESS names another one`;

function stackLine(stack: MachineStatus['stack'], printer: Printer): string {
  switch (stack.state) {
    case 'down':
      return 'the local stack is down; petrel up starts it, and so does the next run';
    case 'degraded':
      return printer.style('yellow', 'the local stack is up, but not all of it is well');
    case 'up':
      return `the stack is up: Temporal ${stack.temporal}, NATS ${stack.nats?.replace('nats://', '')}, ${stack.children.length} processes`;
  }
}

function runTable(runs: readonly RunSummary[], printer: Printer): string {
  return renderTable(
    runs,
    [
      { head: 'run', value: (run) => run.runId },
      { head: 'state', value: (run) => styledState(run, printer) },
      { head: 'iteration', value: iterationText },
      { head: 'reward', value: (run) => run.reward?.toFixed(3), spare: 1 },
      { head: 'validation', value: validationText, spare: 2 },
    ],
    widthFor(printer.stdout),
  );
}
