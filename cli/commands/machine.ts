/** Commands about the local stack. */
import type { CommandSpec } from '../command.ts';

export const MACHINE_COMMANDS: readonly CommandSpec[] = [
  {
    name: 'up',
    doc: 'Start the local stack: Temporal, NATS, the control process, workers.',
    group: 'This machine',
    options: [
      { flags: '--workers <n>', doc: 'worker processes with all roles' },
      { flags: '--listen <address>', doc: 'an address of this machine at which workers of others may join; off: none' },
      { flags: '--take-over', doc: 'take the name of this stack from another stack, which then drives no more runs' },
    ],
    examples: ['petrel up', 'petrel up --listen 10.0.0.5:4222'],
    load: () => import('./up.ts'),
  },
  {
    name: 'down',
    doc: 'Stop the local stack. Runs continue after the next up.',
    group: 'This machine',
    load: () => import('./down.ts'),
  },
  {
    name: 'doctor',
    doc: 'Check this machine, the set-up and the stack.',
    group: 'This machine',
    load: () => import('./doctor.ts'),
  },
];
