/** Commands about machines that join. */
import type { CommandSpec } from '../../command.ts';

export const FLEET_COMMANDS: readonly CommandSpec[] = [
  {
    name: 'fleet token',
    doc: 'Print the file with which machines join a pool. It is a secret until it expires.',
    group: 'This machine',
    options: [
      { flags: '--pool <name>', doc: 'name of the pool', required: true },
      {
        flags: '--roles <roles>',
        doc: 'what its workers do: rollout, reward, or both with a comma',
        default: 'rollout,reward',
      },
      { flags: '--ttl <duration>', doc: 'for how long machines may join with it', default: '24h' },
      { flags: '--store <store>', doc: 'the store whose runs the pool serves; default: the one of this home' },
    ],
    examples: [
      'petrel fleet token --pool gpus > join.json',
      'petrel fleet token --pool scorers --roles reward --ttl 1h',
    ],
    load: () => import('./token.ts'),
  },
  {
    name: 'worker',
    doc: 'Join a stack of another machine, and work until Ctrl-C. Fetches the build of that stack from the store, so it needs no set-up.',
    group: 'This machine',
    options: [
      { flags: '--join <file>', doc: 'the file of petrel fleet token', required: true },
      { flags: '--threads <n>', doc: 'compute threads; default: all processors' },
    ],
    examples: ['petrel worker --join join.json'],
    load: () => import('./worker.ts'),
  },
];
