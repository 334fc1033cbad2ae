import { expect, it } from 'vitest';
import { insist, usualPatience } from './patience.ts';

const patience = { ...usualPatience, attempts: 3, firstPauseMs: 1, longestPauseMs: 1 };
const request = { what: 'get x', where: 's3://bucket' };
const named = (name: string, status?: number) =>
  Object.assign(new Error('no'), { name }, status === undefined ? {} : { $metadata: { httpStatusCode: status } });

async function failing(
  error: Error,
  worked: boolean,
): Promise<{ readonly kind: string; readonly code: string; readonly attempts: number }> {
  let attempts = 0;
  const attempt = async () => {
    attempts += 1;
    throw error;
  };
  const { kind, code } = (await insist({ ...request, worked }, patience, attempt).catch(
    (thrown: unknown) => thrown,
  )) as { kind: string; code: string };
  return { kind, code, attempts };
}

it('waits for credentials that were there before: the service that hands them out may be away', async () => {
  const none = named('CredentialsProviderError');
  expect(await failing(none, true)).toEqual({ kind: 'retryable', code: 'StoreUnavailable', attempts: 3 });
  expect(await failing(none, false)).toEqual({ kind: 'terminal', code: 'InvalidInput', attempts: 1 });
});

it('is a pause where a store refuses what it did before, and an error where it never worked', async () => {
  for (const [error, code] of [
    [named('AccessDenied', 403), 'StoreDenied'],
    [named('ExpiredToken', 400), 'StoreDenied'],
    [named('Strange', 400), 'StoreRefused'],
    [named('NoSuchBucket', 404), 'InvalidInput'],
  ] as const) {
    expect(await failing(error, true)).toEqual({ kind: 'pause', code, attempts: 1 });
    expect(await failing(error, false)).toEqual({ kind: 'terminal', code, attempts: 1 });
  }
});
