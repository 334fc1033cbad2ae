import { expect, it } from 'vitest';
import { insist, usualPatience } from './patience.ts';

const patience = { ...usualPatience, attempts: 3, firstPauseMs: 1, longestPauseMs: 1 };
const request = { what: 'get x', where: 's3://bucket' };
const named = (name: string, status?: number) =>
  Object.assign(new Error('no'), { name }, status === undefined ? {} : { $metadata: { httpStatusCode: status } });

async function failing(
  error: Error,
  asked: { readonly worked?: boolean; readonly serving?: boolean } = {},
): Promise<{ readonly kind: string; readonly code: string; readonly attempts: number }> {
  let attempts = 0;
  const attempt = async () => {
    attempts += 1;
    throw error;
  };
  const { kind, code } = (await insist({ ...request, ...asked }, patience, attempt).catch(
    (thrown: unknown) => thrown,
  )) as { kind: string; code: string };
  return { kind, code, attempts };
}

it('retries when credentials that existed before are missing, because their service may be down', async () => {
  const none = named('CredentialsProviderError');
  expect(await failing(none, { worked: true })).toEqual({ kind: 'retryable', code: 'StoreUnavailable', attempts: 3 });
  expect(await failing(none)).toEqual({ kind: 'terminal', code: 'InvalidInput', attempts: 1 });
});

it('reports a refusal as unfit in a serving process and as a terminal error in a command', async () => {
  for (const [error, code] of [
    [named('AccessDenied', 403), 'StoreDenied'],
    [named('ExpiredToken', 400), 'StoreDenied'],
    [named('Strange', 400), 'StoreRefused'],
    [named('NoSuchBucket', 404), 'InvalidInput'],
  ] as const) {
    for (const worked of [false, true]) {
      expect(await failing(error, { worked, serving: true })).toEqual({ kind: 'unfit', code, attempts: 1 });
      expect(await failing(error, { worked })).toEqual({ kind: 'terminal', code, attempts: 1 });
    }
  }
});
