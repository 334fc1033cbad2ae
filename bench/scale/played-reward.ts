/** Scores nothing: gives the scores that a real run had. */
import { tmpdir } from 'node:os';
import type { RewardInput, RewardOutput } from '../../core/wire/jobs/index.ts';
import type { JobMessage } from '../../core/wire/messages.ts';
import type { Store } from '../../core/ports/store.ts';
import { RewardRole } from '../../workers/reward/score.ts';
import { play } from './played-engine.ts';
import type { PlayedPorts } from './played-engine.ts';

export class PlayedReward extends RewardRole {
  readonly #ports: Pick<PlayedPorts, 'store' | 'recording'>;

  constructor(ports: Pick<PlayedPorts, 'store' | 'recording'>) {
    super(tmpdir(), () => {
      throw new Error('no recorded scorer asks an endpoint');
    });
    this.#ports = ports;
  }

  override async score(
    _store: Store,
    message: JobMessage,
    _input: RewardInput,
  ): Promise<{ output: RewardOutput; ahead: number }> {
    return { output: (await play(this.#ports, message)) as unknown as RewardOutput, ahead: 0 };
  }
}
