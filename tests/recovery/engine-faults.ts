/** What can happen to the processes of an engine that a worker started beside itself. */

export interface RankFault {
  /** Whose: of the group that trains, or of the sampler. */
  readonly of: 'trainer' | 'sampler';
  readonly which: 'one' | 'all';
  /**
   * `kill`: SIGKILL. `stop`: SIGSTOP, for good. `exhaust`: it gets no more memory, so the next array fails that does
   * not fit into what it has.
   */
  readonly how: 'kill' | 'stop' | 'exhaust';
}

export const engineFaults = {
  'one rank': { kills: [], ranks: { of: 'trainer', which: 'one', how: 'kill' } },
  'all ranks': { kills: [], ranks: { of: 'trainer', which: 'all', how: 'kill' } },
  'hung rank': { kills: [], ranks: { of: 'trainer', which: 'one', how: 'stop' } },
  'rank without memory': { kills: [], ranks: { of: 'trainer', which: 'one', how: 'exhaust' } },
  sampler: { kills: [], ranks: { of: 'sampler', which: 'all', how: 'kill' } },
  'hung sampler': { kills: [], ranks: { of: 'sampler', which: 'all', how: 'stop' } },
  'sampler without memory': { kills: [], ranks: { of: 'sampler', which: 'all', how: 'exhaust' } },
} as const satisfies Record<string, { readonly kills: readonly []; readonly ranks: RankFault }>;
