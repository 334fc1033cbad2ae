/** Work whose result nothing has committed yet: a wish to stop or cancel need not wait for it. */
import { CancellationScope, isCancellation } from '@temporalio/workflow';
import type { Wish } from '../core/records/schema.ts';

export class Abandonable {
  #running: { readonly scope: CancellationScope; readonly by: readonly Wish[] } | undefined;

  /** Leaves the work undone if it may be left by this wish. */
  tell(wish: Wish): void {
    if (this.#running?.by.includes(wish)) this.#running.scope.cancel();
  }

  /** False when it was abandoned. `by`: the wishes that may leave it. When a part of the work fails, none of it goes on. */
  async run(by: readonly Wish[], work: () => Promise<void>): Promise<boolean> {
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
