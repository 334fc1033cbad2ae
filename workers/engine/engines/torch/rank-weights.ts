/** The weights of a sampler in a rank: in its own memory, or in a file that it shares with this process. */
import type { BlockHash, EngineParameter, WeightsFormat } from '../../../../core/parameters.ts';
import type { Call, StateSource } from '../../../../core/ports/policy.ts';
import { publicationRoot } from '../roots.ts';
import type { RankState } from './rank-state.ts';

export interface RankWeights {
  readonly parameters: readonly EngineParameter[];
  /** Loads them, and resolves with the digest of what is there then. */
  use(source: StateSource, format: WeightsFormat, hash: BlockHash, call?: Call): Promise<string>;
  readPublished(format: WeightsFormat, start: number, into: Uint8Array): Promise<void>;
  close(): Promise<void>;
}

/** Weights that a rank keeps as a state. */
export const stateWeights = (state: RankState): RankWeights => ({
  parameters: state.parameters,
  async use(source, format, hash, call) {
    await state.load(source, call);
    return publicationRoot(state, format, hash, call);
  },
  readPublished: (format, start, into) => state.readPublished(format, start, into),
  close: async () => {},
});
