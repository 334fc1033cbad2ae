/** Sorts the errors of the EC2 API: nothing free, the account's limit, a person's work, or ask again. */
import { PetrelError, RetryableError, UnfitError } from '../../../core/errors.ts';
import type { LaunchRefusal } from '../../../core/ports/provider.ts';

/** Codes that mean: nothing is free at this type, zone and market, or in this subnet. Another place may have some. */
const capacity = new Set([
  'InsufficientInstanceCapacity',
  'InsufficientCapacity',
  'InsufficientCapacityOnHost',
  'InsufficientHostCapacity',
  'InsufficientReservedInstanceCapacity',
  'InsufficientVolumeCapacity',
  'InsufficientFreeAddressesInSubnet',
  'ReservationCapacityExceeded',
  // The price of spot instances has passed the price on demand, which is the limit when none is set.
  'SpotMaxPriceTooLow',
  'UnfulfillableCapacity',
  // This type is not offered in this zone. A type that is offered nowhere is found by `check`.
  'Unsupported',
]);

const limit = new Set([
  'InstanceLimitExceeded',
  'MaxFleetCountExceeded',
  'MaxSpotFleetRequestCountExceeded',
  'MaxSpotInstanceCountExceeded',
  'ResourceLimitExceeded',
  'TargetCapacityLimitExceededException',
  'VcpuLimitExceeded',
  'VolumeLimitExceeded',
]);

/** The account asks too often, or the service fails. */
const unavailable = new Set([
  'EC2ThrottledException',
  'InternalError',
  'InternalFailure',
  'RequestLimitExceeded',
  'ServerInternal',
  'ServiceUnavailable',
  'Unavailable',
  // Signed by a slow clock or an old session. The SDK corrects both for the next request.
  'RequestExpired',
  'ExpiredToken',
  'ExpiredTokenException',
]);

/** EC2's code, or the SDK's name of an error without an answer. */
export const codeOf = (error: unknown): string => (error instanceof Error ? error.name : String(error));

/** 0: no answer. */
const statusOf = (error: unknown): number =>
  (error as { readonly $metadata?: { readonly httpStatusCode?: number } } | undefined)?.$metadata?.httpStatusCode ?? 0;

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** The SDK found none. Their source may answer later: the metadata service of the control machine, for example. */
const noCredentials = 'CredentialsProviderError';

/** No credentials, or credentials that allow too little. */
export function isDenied(error: unknown): boolean {
  const code = codeOf(error);
  return (
    code === 'UnauthorizedOperation' ||
    code === noCredentials ||
    code === 'OptInRequired' ||
    code === 'InvalidClientTokenId' ||
    code === 'SignatureDoesNotMatch' ||
    code === 'Blocked' ||
    code === 'PendingVerification' ||
    code.startsWith('AuthFailure')
  );
}

/** May the same request succeed later? Without an answer nobody knows whether it has been acted on. */
export function isTransient(error: unknown): boolean {
  if (error instanceof PetrelError || isDenied(error)) return false;
  const code = codeOf(error);
  const status = statusOf(error);
  if (capacity.has(code) || limit.has(code)) return false;
  return status === 0 || status >= 500 || status === 429 || unavailable.has(code) || code.startsWith('Throttling');
}

/**
 * Why a launch got nothing. Throws RetryableError where the answer is not known, and UnfitError where nothing was
 * asked.
 */
export function refusalOf(error: unknown): LaunchRefusal {
  if (isTransient(error) || codeOf(error) === noCredentials) throw failureOf('launch instances', error);
  const code = codeOf(error);
  const message = messageOf(error);
  if (code === 'IdempotentParameterMismatch')
    return {
      kind: 'configuration',
      code,
      message: `this launch was already made with other parameters, so its token must not be used again: ${message}`,
    };
  return { kind: capacity.has(code) ? 'capacity' : limit.has(code) ? 'limit' : 'configuration', code, message };
}

function unanswered(what: string, error: unknown): RetryableError {
  return new RetryableError('CloudUnavailable', `EC2 did not ${what}: ${codeOf(error)}: ${messageOf(error)}`, {
    hint: 'the same call is safe to repeat; see https://status.aws.amazon.com if it goes on',
    cause: error,
  });
}

/** What any call throws: RetryableError, or UnfitError when this process may not ask that. */
export function failureOf(what: string, error: unknown): Error {
  if (error instanceof PetrelError) return error;
  if (isTransient(error)) return unanswered(what, error);
  const code = codeOf(error);
  return new UnfitError('CloudDenied', `EC2 refused to ${what}: ${code}: ${messageOf(error)}`, {
    hint: hintOf(error),
    cause: error,
  });
}

function hintOf(error: unknown): string {
  if (codeOf(error) === noCredentials) return 'check its credentials with `aws sts get-caller-identity`';
  if (isDenied(error)) return 'give this machine the rights that `petrel fleet policy --controller` prints';
  return 'check the pool with `petrel fleet apply`';
}
