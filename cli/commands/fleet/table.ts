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
      {
        flags: '--program <file>',
        doc: 'write a program instead, for machines that have Node and nothing else: node FILE joins',
      },
    ],
    examples: [
      'petrel fleet token --pool gpus > join.json',
      'petrel fleet token --pool scorers --roles reward --ttl 1h',
      'petrel fleet token --pool lab --program join-lab.mjs',
    ],
    load: () => import('./token.ts'),
  },
  {
    name: 'fleet ls',
    doc: 'Show the machines that have joined, and the tokens with which others may.',
    group: 'This machine',
    examples: ['petrel fleet ls', 'petrel fleet ls --json'],
    load: () => import('./ls.ts'),
  },
  {
    name: 'fleet policy',
    doc: 'Print the least that machines which join may do in an S3 store, as a policy for their identity or for the bucket.',
    group: 'This machine',
    options: [
      { flags: '--store <store>', doc: 's3://bucket/prefix; default: the store of this home' },
      { flags: '--principal <arn>', doc: 'for a policy of the bucket: whom it is about' },
    ],
    examples: [
      'petrel fleet policy --store s3://team/runs > policy.json',
      'petrel fleet policy --principal arn:aws:iam::123456789012:role/petrel-workers',
    ],
    load: () => import('./policy.ts'),
  },
  {
    name: 'fleet revoke',
    doc: 'Take back a machine, a token, or all of a pool, as fleet ls shows them. Connections end at once, their jobs go on elsewhere, and none of them can join again.',
    group: 'This machine',
    arguments: '<what>',
    examples: ['petrel fleet revoke lab', 'petrel fleet revoke token-4f0c2a91b7d3'],
    load: () => import('./revoke.ts'),
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
