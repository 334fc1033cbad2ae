import { InvalidInputError } from '../../core/errors.ts';
import { metricReference } from '../../core/metric-reference.ts';
import { METRICS } from '../../core/metrics.ts';
import type { CommandModule, CommandSpec } from '../command.ts';
import { commandReference } from '../command-reference.ts';

/** `petrel reference`, for this table of commands. */
export function referenceOf(commands: readonly CommandSpec[]): CommandModule {
  return {
    run: async ({ words: [page = ''] }, { printer }) => {
      switch (page) {
        case 'commands':
          printer.data(
            commands.map(({ load: _load, ...command }) => command),
            () => commandReference(commands).trimEnd(),
          );
          return undefined;
        case 'metrics':
          printer.data(METRICS, () => metricReference().trimEnd());
          return undefined;
        default:
          throw new InvalidInputError(`there is no page ${JSON.stringify(page)}; expected commands or metrics`, {
            hint: 'petrel reference commands',
          });
      }
    },
  };
}
