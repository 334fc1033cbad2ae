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
    name: 'fleet apply',
    doc: 'Make the fleet what a file says: its pools, where their instances are bought, and what they may cost. The cloud is asked first whether it has all that.',
    group: 'This machine',
    arguments: '<file>',
    options: [
      { flags: '--store <store>', doc: 'the store whose runs the fleet serves; default: the one of this home' },
    ],
    examples: ['petrel fleet apply fleet.yaml'],
    load: () => import('./apply.ts'),
  },
  {
    name: 'fleet show',
    doc: 'Show the fleet as it was applied, with every default.',
    group: 'This machine',
    examples: ['petrel fleet show'],
    load: () => import('./show.ts'),
  },
  {
    name: 'fleet explain',
    doc: 'Show why each pool has as many instances as it has, what was refused, and the prices of the market.',
    group: 'This machine',
    examples: ['petrel fleet explain'],
    load: () => import('./explain.ts'),
  },
  {
    name: 'fleet scale',
    doc: "Give a pool a number of instances instead of the planner's, or the planner's again with auto.",
    group: 'This machine',
    arguments: '<pool> <count>',
    examples: ['petrel fleet scale samplers 4', 'petrel fleet scale samplers auto'],
    load: () => import('./scale.ts'),
  },
  {
    name: 'fleet drain',
    doc: 'Give an instance back when its jobs have ended.',
    group: 'This machine',
    arguments: '<instance>',
    examples: ['petrel fleet drain i-0f3a8c2e9d5b71640'],
    load: () => import('./drain.ts'),
  },
  {
    name: 'fleet rm',
    doc: 'Remove a pool. Its instances are given back when their jobs have ended.',
    group: 'This machine',
    arguments: '<pool>',
    examples: ['petrel fleet rm samplers'],
    load: () => import('./rm.ts'),
  },
  {
    name: 'fleet ls',
    doc: 'Show the machines that were bought or have joined, and the tokens with which others may.',
    group: 'This machine',
    examples: ['petrel fleet ls', 'petrel fleet ls --json'],
    load: () => import('./ls.ts'),
  },
  {
    name: 'cost',
    doc: 'Show what the bought instances have cost, and for what: work, waiting, losses, booting, idle time.',
    group: 'This machine',
    arguments: '[run]',
    options: [
      {
        flags: '--by <what>',
        doc: 'one line per',
        choices: ['run', 'use', 'pool', 'zone', 'iteration'],
        default: 'run',
      },
    ],
    examples: ['petrel cost', 'petrel cost learn-sums-20260102-030405-0a1b --by iteration', 'petrel cost --by use'],
    load: () => import('./cost.ts'),
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
