/** Work whose result is not committed yet, so that a stop or a cancel need not wait for it. */
import { CancellationScope, isCancellation } from '@temporalio/workflow';
import type { DesiredState } from '../core/run-states.ts';

export class Abandonable {
  #running: { readonly scope: CancellationScope; readonly by: readonly DesiredState[] } | undefined;

  /** Cancels the running work, if this desired state abandons it. */
  tell(desired: DesiredState): void {
    if (this.#running?.by.includes(desired)) this.#running.scope.cancel();
  }

  /**
   * Resolves with false when the work was abandoned. `by`: the desired states that abandon it. When one part of the
   * work fails, the other parts are cancelled.
   */
  async run(by: readonly DesiredState[], work: () => Promise<void>): Promise<boolean> {
    const scope = new CancellationScope();
    this.#running = { scope, by };
    try {
      await scope.run(work);
      return true;
    } catch (error) {
      if (isCancellation(error) && scope.consideredCancelled && !CancellationScope.current().consideredCancelled)
        return false;
      scope.cancel();
      throw error;
    } finally {
      this.#running = undefined;
    }
  }
}
