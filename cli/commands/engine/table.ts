/** Commands about engines that users install by themselves. */
import type { CommandSpec } from '../../command.ts';

const device = {
  flags: '--device <device>',
  doc: 'what it computes on: processors, GPUs of NVIDIA (cuda) or of AMD (rocm)',
  choices: ['cpu', 'cuda', 'rocm'],
  default: 'cpu',
};

export const ENGINE_COMMANDS: readonly CommandSpec[] = [
  {
    name: 'engine install',
    arguments: '<engine>',
    doc: 'Make the Python environment of an engine, torch or vllm, under PETREL_HOME, from a list with hashes.',
    group: 'This machine',
    options: [device, { flags: '--python <path>', doc: 'use this Python, which has the packages; install nothing' }],
    examples: [
      'petrel engine install torch',
      'petrel engine install vllm',
      'petrel engine install torch --device cuda',
      'petrel engine install torch --device rocm --python /opt/venv/bin/python',
    ],
    load: () => import('./install.ts'),
  },
  {
    name: 'engine check',
    arguments: '<engine>',
    doc: 'Train and sample a small model on an installed engine, twice: devices, memory, speed, and whether the bits repeat. Exit 8 when the engine may not be trusted.',
    group: 'This machine',
    options: [device],
    examples: ['petrel engine check torch', 'petrel engine check vllm --device cuda'],
    load: () => import('./check.ts'),
  },
];
