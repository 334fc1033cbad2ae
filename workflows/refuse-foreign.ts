/**
 * Workflows act only on payloads that this stack has encrypted. Every user of the machine can reach the Temporal
 * server, so arguments, signals and activity results may come from another user. The codec replaces such payloads by a
 * mark.
 */
import { ActivityFailure, ApplicationFailure } from '@temporalio/workflow';
import type { WorkflowInterceptors } from '@temporalio/workflow';
import { isForeign } from '../core/wire/foreign.ts';
import { outOfDateType } from '../core/wire/workflow.ts';

/** Loaded into every workflow by the bundle. */
export const interceptors = (): WorkflowInterceptors => ({
  inbound: [
    {
      /**
       * A workflow that another user started, or that was started before payloads were encrypted, ends without any
       * effect.
       */
      execute: (input, next) => {
        if (!input.args.some(isForeign)) return next(input);
        return Promise.reject(ApplicationFailure.nonRetryable(notOurs, 'Foreign'));
      },
      /** Drops a signal of another user. */
      handleSignal: (input, next) => (input.args.some(isForeign) ? Promise.resolve() : next(input)),
    },
  ],
  outbound: [{ scheduleActivity: (input, next) => next(input).then(refuseResult, refuseFailure) }],
});

const notOurs = 'the payload was not encrypted with the key of this stack';

/** Another user has answered in place of our activity: the workflow reads the run's position again. */
const outOfDate = () => ApplicationFailure.nonRetryable(notOurs, outOfDateType);

function refuseResult(result: unknown): unknown {
  if (isForeign(result)) throw outOfDate();
  return result;
}

function refuseFailure(error: unknown): never {
  const cause = error instanceof ActivityFailure ? error.cause : undefined;
  if (cause instanceof ApplicationFailure && cause.details?.some(isForeign)) throw outOfDate();
  throw error;
}
