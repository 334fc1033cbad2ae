/** A verdict for people: a summary, then every fault. */
import type { Printer } from '../printer/printer.ts';
import { counted, showBytes } from '../../core/quantities.ts';
import { renderFields } from '../printer/table.ts';
import type { LedgerVerdict } from '../../api/index.ts';

export function ledgerText(verdict: LedgerVerdict, printer: Printer): string {
  const { faults } = verdict;
  const told = faults.map(
    ({ key, expected, found }) =>
      `${printer.style('red', 'FAULT')} ${key}\n  expected ${expected}\n  found    ${found}`,
  );
  const sum =
    faults.length === 0
      ? 'every sampled prompt was used exactly once or is listed as dropped; no sample was trained twice; every record is in its place'
      : counted(faults.length, 'fault');
  return [summary(verdict, printer), ...told, sum].join('\n\n');
}

type Field = readonly [name: string, value: string | number | undefined];

function summary(verdict: LedgerVerdict, printer: Printer): string {
  const { fates, abandoned, checkpoints, evaluations } = verdict;
  const outcomes = Object.entries(fates)
    .filter(([name, count]) => count > 0 || name === 'trained')
    .map(([name, count]) => `${count} ${name}`);
  const fields: readonly Field[] = [
    ['run', `${verdict.runId}, ${verdict.state}`],
    [
      'iterations',
      `${verdict.position} of ${verdict.iterations}${verdict.pending ? ', one more batch waits for its update' : ''}`,
    ],
    ['draws', `${verdict.draws}: ${outcomes.join(', ')}`],
    [
      'samples',
      `${verdict.samplesTrained} trained${verdict.deep ? `, ${verdict.samplesCompared} compared with their source token by token` : ''}`,
    ],
    ['terms', verdict.terms],
    [
      'abandoned',
      abandoned.length === 0
        ? undefined
        : abandoned
            .map(({ term, from, iterations }) => `${counted(iterations, 'iteration')} of term ${term} from ${from} on`)
            .join('\n'),
    ],
    ['checkpoints', listed(checkpoints)],
    ['validations', listed(evaluations)],
    ['retired', verdict.retired === 0 ? undefined : `${counted(verdict.retired, 'object')} that no recovery needs`],
    ['unnamed', verdict.unnamed === 0 ? undefined : `${counted(verdict.unnamed, 'manifest')} that no record names`],
    [
      'read',
      `${verdict.objects} objects, ${showBytes(verdict.bytes)}${verdict.deep ? '' : '; --deep reads every byte'}`,
    ],
  ];
  return renderFields(fields, printer.stdout);
}

/** A long run has hundreds: the first ones and the last. `--json` has all. */
function listed(positions: readonly number[]): string {
  if (positions.length <= 8) return positions.join(', ');
  return `${positions.length}: ${positions.slice(0, 3).join(', ')} … ${positions.slice(-2).join(', ')}`;
}
