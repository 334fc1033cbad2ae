/**
 * Requests to the endpoint of a run: each waits for a permit, and is sent again after a fault that may pass. A fault
 * that a person must fix is a PauseError, so that no sample gets a score because of it.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { shownUrl, type EndpointSettings } from '../../core/endpoint.ts';
import { errorToJson, PauseError } from '../../core/errors.ts';
import type { Permit, Permits } from '../../core/ports/permits.ts';
import { namedVariables, secretOf } from '../host/secrets.ts';
import { redactor } from '../host/redact.ts';
import { send, type HttpAnswer, type Ways } from './post.ts';
import { retryAfterMs, statusHint, waitMs } from './retry.ts';

export interface EndpointPorts {
  readonly permits: Permits;
  readonly env: NodeJS.ProcessEnv;
  /** How requests leave this machine; default: directly. */
  readonly ways?: Ways | undefined;
  /** The command that goes on after a fault was fixed: `petrel resume <run>`. */
  readonly resume: string;
  /** 1 s. */
  readonly firstWaitMs?: number | undefined;
}

export interface EndpointRequest {
  readonly method: string;
  readonly url: string;
  readonly body?: string | undefined;
  /** A client error that is passed on, and no reason to pause. */
  readonly passes?: ((status: number) => boolean) | undefined;
  /** A line about a request that is sent again. */
  readonly say: (line: string) => void;
}

/** A fault that may pass. */
interface Fault {
  readonly what: string;
  readonly afterMs: number | undefined;
}

/** An endpoint that wants a longer pause is down for this run. */
const longestHoldMs = 600_000;
const firstWaitMs = 1_000;
const shownText = 200;

export class EndpointClient {
  readonly settings: EndpointSettings;
  readonly #ports: EndpointPorts;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #redact: (text: string) => string;

  /** @throws UnfitError `MissingSecret`. */
  constructor(settings: EndpointSettings, ports: EndpointPorts) {
    this.settings = settings;
    this.#ports = ports;
    const { apiKey } = settings;
    const key = apiKey === undefined ? undefined : secretOf(apiKey.slice('env:'.length), ports.env);
    this.#headers = {
      'content-type': 'application/json',
      accept: 'application/json',
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
    };
    this.#redact = redactor(namedVariables({ apiKey }, ports.env));
  }

  /**
   * The answer, with a status below 300 or one that `passes`.
   * @throws PauseError `EndpointDown` after the last retry, `EndpointRefused` for what a retry cannot change; the
   *   signal's reason; RetryableError `NoPermits`.
   */
  async ask(request: EndpointRequest, signal: AbortSignal): Promise<HttpAnswer> {
    const { retries } = this.settings;
    for (let failed = 0; ; ) {
      const permit = await this.#ports.permits.acquire(this.settings.tokensPerRequest, signal);
      const outcome = await this.#once(request, permit, signal);
      if (outcome === 'again') continue;
      if ('status' in outcome) return outcome;
      const { what, afterMs } = outcome;
      if (failed === retries || (afterMs ?? 0) > longestHoldMs) throw this.#down(request, what, failed + 1);
      failed += 1;
      const wait = Math.max(afterMs ?? 0, waitMs(failed, this.#ports.firstWaitMs ?? firstWaitMs, Math.random()));
      request.say(
        `${shownUrl(request.url)}: ${what}; asking again in ${(wait / 1000).toFixed(1)} s, ${failed} of ${retries}`,
      );
      await sleep(wait, undefined, { signal }).catch((error: unknown) => {
        signal.throwIfAborted();
        throw error;
      });
    }
  }

  /** Text of the endpoint without the key. */
  clean(text: string): string {
    return this.#redact(text);
  }

  /** The text as errors show it: not all of a long one. */
  shown(text: string): string {
    const clean = this.clean(text).trim();
    return clean.length <= shownText ? clean : `${clean.slice(0, shownText)}…`;
  }

  /** `again`: the permit was lost. */
  async #once(request: EndpointRequest, permit: Permit, signal: AbortSignal): Promise<HttpAnswer | Fault | 'again'> {
    const { method, url, body } = request;
    const { timeoutMs } = this.settings;
    let given: { tokens?: number; holdMs?: number } = {};
    try {
      const answer = await send(
        { method, url, body, timeoutMs, headers: this.#headers },
        AbortSignal.any([signal, permit.signal]),
        this.#ports.ways,
      );
      const { status } = answer;
      const tokens = tokensOf(answer.text);
      if (tokens !== undefined) given = { tokens };
      if (status >= 200 && status < 300) return answer;
      const afterMs = retryAfterMs(answer.headers['retry-after'], Date.now());
      if (status === 408 || status === 429 || status >= 500) {
        if (afterMs !== undefined && (status === 429 || status === 503))
          given = { ...given, holdMs: Math.min(afterMs, longestHoldMs) };
        return { what: `HTTP ${status} ${this.shown(answer.text)}`.trim(), afterMs };
      }
      if (request.passes?.(status) === true) return answer;
      throw this.refused(request.url, answer);
    } catch (error) {
      signal.throwIfAborted();
      if (permit.signal.aborted) return 'again';
      if (error instanceof PauseError) throw error;
      return { what: this.shown(errorToJson(error).message), afterMs: undefined };
    } finally {
      permit.release(given);
    }
  }

  /** The error for a client error that somebody must look at. */
  refused(url: string, { status, headers, text }: HttpAnswer): PauseError {
    const to = headers.location === undefined ? '' : ` to ${shownUrl(headers.location)}`;
    return new PauseError(
      'EndpointRefused',
      `${shownUrl(url)} refused a request: HTTP ${status}${to} ${this.shown(text)}`.trim(),
      { hint: statusHint(status, this.settings, this.#ports.resume) },
    );
  }

  #down({ url }: EndpointRequest, what: string, tries: number): PauseError {
    return new PauseError(
      'EndpointDown',
      `${shownUrl(url)} gave no answer in ${tries} ${tries === 1 ? 'try' : 'tries'}; the last: ${what}`,
      { hint: `start the service, then ${this.#ports.resume}` },
    );
  }

  /** The error for an answer that no service of this kind gives. */
  nonsense(url: string, what: string, text: string): PauseError {
    return new PauseError('EndpointNonsense', `${shownUrl(url)} answered ${what}: ${this.shown(text)}`, {
      hint: `check that reward.endpoint.url is the address of such a service, then ${this.#ports.resume} reward.endpoint.url=${shownUrl(this.settings.url ?? '')}`,
    });
  }
}

/** `usage.total_tokens` of an answer of OpenAI's interface. */
function tokensOf(text: string): number | undefined {
  try {
    const { usage } = JSON.parse(text) as { usage?: { total_tokens?: unknown } };
    const total = usage?.total_tokens;
    return typeof total === 'number' && Number.isInteger(total) && total >= 0 ? total : undefined;
  } catch {
    return undefined; // whoever asked says what is wrong with the answer
  }
}
