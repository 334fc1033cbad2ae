/** Commands about engines that users install by themselves. */
import type { CommandSpec } from '../../command.ts';

export const ENGINE_COMMANDS: readonly CommandSpec[] = [
  {
    name: 'engine install',
    arguments: '<engine>',
    doc: 'Make the Python environment of an engine, torch, under PETREL_HOME, from a list with hashes.',
    group: 'This machine',
    options: [
      { flags: '--device <device>', doc: 'what it computes on', choices: ['cpu', 'cuda'], default: 'cpu' },
      { flags: '--python <path>', doc: 'use this Python, which has the packages; install nothing' },
    ],
    examples: ['petrel engine install torch', 'petrel engine install torch --python /opt/conda/bin/python'],
    load: () => import('./install.ts'),
  },
  {
    name: 'engine check',
    arguments: '<engine>',
    doc: 'Train and sample a small model on an installed engine. Exit 8 when it does not repeat its bits.',
    group: 'This machine',
    options: [{ flags: '--device <device>', doc: 'what it computes on', choices: ['cpu', 'cuda'], default: 'cpu' }],
    examples: ['petrel engine check torch'],
    load: () => import('./check.ts'),
  },
];
