/** The errors of every hub: each says what to do. */
import { InvalidInputError, PetrelError, RetryableError } from '../../core/errors.ts';
import type { HubModel, HubPlace } from './hub.ts';

/** An answer of a hub that is no success: its HTTP status, and what there is to say of it. */
export interface HubAnswer {
  readonly status: number;
  readonly message: string;
}

/**
 * Makes a call to the hub. `answerOf`: what the call throws, if it is an answer of the hub. Throws InvalidInputError,
 * or RetryableError when the hub gives no answer.
 */
export async function explained<T>(
  { url, unknown, noAccess }: HubPlace,
  { name, revision }: HubModel,
  answerOf: (cause: unknown) => HubAnswer | undefined,
  call: () => Promise<T>,
): Promise<T> {
  try {
    return await call();
  } catch (cause) {
    if (cause instanceof InvalidInputError) throw cause;
    const answer = answerOf(cause);
    const status = answer?.status;
    if (status === 404)
      throw new InvalidInputError(`${url} has no model ${name} at ${revision}`, { hint: unknown, cause });
    if (status === 401 || status === 403) {
      throw new InvalidInputError(
        `${url} gives no access to ${name} (${status}): it is gated, private, or does not exist`,
        { hint: noAccess(name), cause },
      );
    }
    const refused = refusalIn(cause);
    const reason = refused?.message ?? answer?.message ?? reasonOf(cause);
    throw new RetryableError('HubUnreachable', `${url} cannot be read: ${reason}`, {
      hint: refused?.hint ?? 'Try again, or give a local folder.',
      cause,
    });
  }
}

/** What refused the request on its way, such as a proxy: fetch wraps its error. */
function refusalIn(cause: unknown): PetrelError | undefined {
  let one = cause;
  for (let depth = 0; depth < 5 && one instanceof Error; depth++, one = one.cause)
    if (one instanceof PetrelError) return one;
  return undefined;
}

/** The innermost message: fetch wraps what happened. */
function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  return cause.cause instanceof Error
    ? cause.cause.message || ((cause.cause as NodeJS.ErrnoException).code ?? cause.message)
    : cause.message;
}
