/** What goes wrong with a server that samples, as errors for people: each has a code, and says what to do next. */
import { shownUrl } from '../../core/endpoint.ts';
import { PauseError, PetrelError, RetryableError, UnfitError } from '../../core/errors.ts';

/** Codes of what a person must correct at a server or on its disk: it says nothing of the weights. */
const corrected: ReadonlySet<string> = new Set(['WrongServer', 'ServerRefused', 'ServerNonsense', 'DiskFull']);

export const isServerFault = (error: unknown): boolean => error instanceof PetrelError && corrected.has(error.code);

/** No connection, or silence. Another worker may reach it; else jobs wait until it answers. */
export function serverDown(url: string, what: string): UnfitError {
  const shown = shownUrl(url);
  return new UnfitError('ServerDown', `the sampling server ${shown} does not answer: ${what}`, {
    hint: `start it again; jobs wait for it, and this must answer: curl -sS ${shown}/v1/models`,
  });
}

/** A server that is gone, or silent, in the middle of a sample. The job comes again. */
export function serverLost(url: string, what: string): RetryableError {
  return new RetryableError('EngineExited', `the sampling server ${shownUrl(url)} was lost: ${what}`, {
    hint: `see the server's log; jobs wait until ${shownUrl(url)} answers again`,
  });
}

/** The server failed at a request that was right. */
export function serverFailed(url: string, what: string): RetryableError {
  return new RetryableError('ServerFailed', `the sampling server ${shownUrl(url)} failed: ${what}`, {
    hint: `see the log of the server at ${shownUrl(url)}`,
  });
}

/** The server refuses a request, and would refuse it again. */
export function serverRefused(url: string, status: number, text: string, apiKey: string | undefined): PauseError {
  const isKey = status === 401 || status === 403;
  const name = apiKey?.slice('env:'.length);
  const key =
    name === undefined
      ? 'it wants a key: rollout.api_key=env:NAME, with the variable NAME set where the workers run'
      : `check the value of ${name} in the environment of the workers: set it, petrel down, petrel up`;
  return new PauseError('ServerRefused', `${shownUrl(url)} refused a request: HTTP ${status} ${text}`.trim(), {
    where: isKey ? 'rollout.api_key' : 'rollout.url',
    hint: isKey ? key : 'check that rollout.url is the server’s address, and rollout.name its kind: vllm or sglang',
  });
}

/** An answer that no such server gives. */
export function serverNonsense(url: string, what: string, hint?: string): PauseError {
  return new PauseError('ServerNonsense', `${shownUrl(url)} answered ${what}`, {
    where: 'rollout.url',
    hint: hint ?? `check that rollout.name is the kind of server at ${shownUrl(url)}, and see its log`,
  });
}

/** Weights that came into the server while a run worked with others. */
export function serverShared(url: string, what: string): RetryableError {
  return new RetryableError('ServerShared', `the sampling server ${shownUrl(url)} ${what}`, {
    hint: 'a server samples for one run at a time: give each run a server of its own',
  });
}

/** The server cannot do what the run needs, as it was started. */
export function wrongServer(url: string, what: string, hint: string, where = 'rollout.url'): PauseError {
  return new PauseError('WrongServer', `the sampling server ${shownUrl(url)} ${what}`, { where, hint });
}
