/** Translates an S3 failure: retry, or tell a person what to do. */
import { InvalidInputError, PetrelError, TerminalError, UnfitError } from '../../../core/errors.ts';

/** The request, for the error's text. */
export interface RequestOf {
  /** `create runs/x/run.json`. */
  readonly what: string;
  /** The store. */
  readonly where: string;
  /** The store has answered this process before, so it had credentials; missing ones may come back. */
  readonly worked?: boolean;
  /**
   * A worker or the control process made the request: a refusal says something about that process, and nothing about
   * the run.
   */
  readonly serving?: boolean;
}

/** A reply that ended too early, or whose bytes do not match the server's checksum. */
export class BrokenTransfer extends Error {}

const transientNames = new Set([
  'TimeoutError',
  'RequestTimeout',
  'RequestTimeoutException',
  'SlowDown',
  'ServiceUnavailable',
  'InternalError',
  'Throttling',
  'ThrottlingException',
  'TooManyRequests',
  'RequestTimeTooSkewed',
  'IncompleteBody',
  'BadDigest',
  'XAmzContentChecksumMismatch',
  'XAmzContentSHA256Mismatch',
]);

const transientCodes = new Set([
  'ECONNRESET',
  'ECONNREFUSED',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'EAI_AGAIN',
  'ENOTFOUND',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ERR_STREAM_PREMATURE_CLOSE',
]);

const credentialNames = new Set(['CredentialsProviderError', 'TokenProviderError', 'CredentialsError']);

/** 0 when there was no reply. */
export function statusOf(error: unknown): number {
  return (
    (error as { readonly $metadata?: { readonly httpStatusCode?: number } } | undefined)?.$metadata?.httpStatusCode ?? 0
  );
}

/** S3's error code, or the system's, or the error's class. */
export function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : String(error);
}

/** The object does not exist. A HEAD has no body that could distinguish a missing key from a missing bucket. */
export function isAbsent(error: unknown): boolean {
  return statusOf(error) === 404 && nameOf(error) !== 'NoSuchBucket' && nameOf(error) !== 'NoSuchUpload';
}

/** The SDK found no credentials. If it found some before, their source does not answer now. */
export function isWithoutCredentials(error: unknown): boolean {
  return credentialNames.has(nameOf(error));
}

/** The same request may succeed later. */
export function isTransient(error: unknown): boolean {
  if (error instanceof BrokenTransfer) return true;
  if (!(error instanceof Error) || error instanceof PetrelError || credentialNames.has(error.name)) return false;
  const status = statusOf(error);
  if (status === 409 || status === 429 || status === 408 || (status >= 500 && status !== 501)) return true;
  if (transientNames.has(error.name)) return true;
  return transientCodes.has(systemCodeOf(error)) || /^(socket hang up|aborted|Checksum mismatch)/.test(error.message);
}

export function describeFailure(error: unknown): string {
  const status = statusOf(error);
  const text = error instanceof Error ? error.message : String(error);
  const name = [...(status === 0 ? [] : [String(status)]), nameOf(error), systemCodeOf(error)]
    .filter((part) => part !== '' && part !== 'Error')
    .join(' ');
  return text === '' || text === 'UnknownError' || name.endsWith(text) ? name : `${name}: ${text}`.replace(/^: /, '');
}

/**
 * A lasting failure, and what a person must do about it. UnfitError for a process that serves runs, TerminalError for a
 * command.
 */
export function toPetrelError(error: unknown, request: RequestOf): PetrelError {
  const refusal = error instanceof PetrelError ? error : refusalOf(error, request);
  if (request.serving !== true || refusal.kind !== 'terminal') return refusal;
  const { code, message, where, hint } = refusal;
  return new UnfitError(code, message, { ...(where && { where }), ...(hint && { hint }), cause: error });
}

function refusalOf(error: unknown, { what, where }: RequestOf): TerminalError {
  const [status, name] = [statusOf(error), nameOf(error)];
  const text = `${where}: ${what}: ${describeFailure(error)}`;
  if (credentialNames.has(name)) {
    return new InvalidInputError(`${where}: no credentials were found for the store`, {
      hint: `Set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; ${restart}`,
      cause: error,
    });
  }
  if (name === 'NoSuchBucket') {
    return new InvalidInputError(`${where}: there is no such bucket`, {
      hint: 'Create the bucket, or fix the name in the recipe; see also AWS_ENDPOINT_URL',
      cause: error,
    });
  }
  if (status === 401 || status === 403 || name === 'ExpiredToken') {
    return new TerminalError('StoreDenied', text, {
      where,
      hint: `The credentials must be valid and allow ListBucket, GetObject, PutObject, AbortMultipartUpload and DeleteObject; ${restart}`,
      cause: error,
    });
  }
  if (status === 501) {
    return new TerminalError('StoreUnfit', text, {
      where,
      hint: 'The server lacks a feature that petrel needs; docs/do/store.md lists them',
      cause: error,
    });
  }
  return new TerminalError('StoreRefused', text, { where, hint: 'petrel doctor checks the store', cause: error });
}

const restart = 'then petrel down and petrel up, because workers keep the environment they were started with';

function systemCodeOf(error: unknown): string {
  const code = (error as { readonly code?: unknown } | undefined)?.code;
  return typeof code === 'string' ? code : '';
}
