/** The commands about the ledger of a run. */
import type { CommandSpec } from '../../command.ts';

export const LEDGER_COMMANDS: readonly CommandSpec[] = [
  {
    name: 'ledger verify',
    arguments: '<run>',
    doc: 'Verify a run from its stored objects alone: every sampled prompt was used once or dropped, no sample trained twice.',
    group: 'Checkpoints',
    options: [{ flags: '--deep', doc: 'read every blob, compare samples token by token, hash all states' }],
    examples: ['petrel ledger verify arithmetic --deep', 'petrel ledger verify arithmetic --json | jq .faults'],
    load: () => import('./verify.ts'),
  },
];
