/** Hosts of scorers that have to do with the endpoint of a run. */
import { setMaxListeners } from 'node:events';
import { at } from '../../core/at.ts';
import { RetryableError } from '../../core/errors.ts';
import type { Permits } from '../../core/ports/permits.ts';
import type { Desks, ScoreOptions, ScoreOutcome, ScorerHost } from '../host/host-types.ts';
import type { ScorerInput } from '../types.ts';
import type { EndpointClient } from './client.ts';
import { EndpointProxy } from './proxy.ts';
import { NoScore } from './question.ts';
import type { EndpointScorer } from './scorers.ts';

/** Scores by asking the endpoint. The samples of a call wait together: the limits decide how many are asked about. */
export class EndpointHost implements ScorerHost {
  readonly #client: EndpointClient;
  readonly #scorer: EndpointScorer;
  readonly #closing = new AbortController();

  constructor(client: EndpointClient, scorer: EndpointScorer) {
    this.#client = client;
    this.#scorer = scorer;
  }

  async ready(): Promise<void> {}

  score(inputs: readonly ScorerInput[], { signal, onPrint }: ScoreOptions = {}): Promise<ScoreOutcome[]> {
    return allOrNone(inputs, [signal, this.#closing.signal], async (input, index, ended): Promise<ScoreOutcome> => {
      try {
        const say = (line: string) => onPrint?.(line, index);
        return { ok: true, ...(await this.#scorer(this.#client, input, say, ended)) };
      } catch (error) {
        if (error instanceof NoScore) return { ok: false, code: 'bad-result', reason: error.message };
        throw error;
      }
    });
  }

  async close(): Promise<void> {
    this.#closing.abort(new RetryableError('ScorerHostClosed', 'the run ended while the endpoint was asked'));
  }
}

/** Calls of a scorer, each with a permit (verl: the reward manager rate_limited). */
export class LimitedHost implements ScorerHost {
  readonly #host: ScorerHost;
  readonly #permits: Permits;
  readonly #tokens: number;

  /** `tokens`: of one call. */
  constructor(host: ScorerHost, permits: Permits, tokens: number) {
    this.#host = host;
    this.#permits = permits;
    this.#tokens = tokens;
  }

  ready(): Promise<void> {
    return this.#host.ready();
  }

  score(inputs: readonly ScorerInput[], { signal, onPrint }: ScoreOptions = {}): Promise<ScoreOutcome[]> {
    return allOrNone(inputs, [signal], async (input, index, ended) => {
      const permit = await this.#permits.acquire(this.#tokens, ended);
      try {
        const options = { signal: ended, onPrint: onPrint && ((line: string) => onPrint(line, index)) };
        return at(await this.#host.score([input], options), 0);
      } finally {
        permit.release();
      }
    });
  }

  close(): Promise<void> {
    return this.#host.close();
  }
}

/**
 * A user's scorer whose processes ask the endpoint through a proxy. A fault of the endpoint ends the call: whatever the
 * scorer makes of it, no sample gets a score.
 */
export class ProxiedHost implements ScorerHost {
  readonly #proxy: EndpointProxy;
  readonly #host: ScorerHost;
  readonly #calls = new Set<AbortController>();

  static async start(
    client: EndpointClient,
    say: (line: string) => void,
    start: (desks: Desks) => Promise<ScorerHost>,
  ): Promise<ProxiedHost> {
    const calls = new Set<AbortController>();
    const fault = (error: unknown) => {
      for (const call of calls) call.abort(error);
    };
    const proxy = await EndpointProxy.start(client, { say, fault });
    try {
      return new ProxiedHost(proxy, await start(proxy), calls);
    } catch (error) {
      await proxy.close();
      throw error;
    }
  }

  private constructor(proxy: EndpointProxy, host: ScorerHost, calls: Set<AbortController>) {
    this.#proxy = proxy;
    this.#host = host;
    this.#calls = calls;
  }

  ready(): Promise<void> {
    return this.#host.ready();
  }

  async score(inputs: readonly ScorerInput[], { signal, onPrint }: ScoreOptions = {}): Promise<ScoreOutcome[]> {
    const call = new AbortController();
    this.#calls.add(call);
    try {
      const ended = signal === undefined ? call.signal : AbortSignal.any([signal, call.signal]);
      return await this.#host.score(inputs, { signal: ended, onPrint });
    } finally {
      this.#calls.delete(call);
    }
  }

  async close(): Promise<void> {
    await this.#host.close();
    await this.#proxy.close();
  }
}

/** The work on each input; when one fails, the others are ended and it is thrown. */
async function allOrNone<T>(
  inputs: readonly ScorerInput[],
  signals: readonly (AbortSignal | undefined)[],
  work: (input: ScorerInput, index: number, ended: AbortSignal) => Promise<T>,
): Promise<T[]> {
  const failed = new AbortController();
  const ended = AbortSignal.any([...signals.filter((signal) => signal !== undefined), failed.signal]);
  setMaxListeners(0, ended); // every input listens
  const all = inputs.map(async (input, index) => {
    try {
      return await work(input, index, ended);
    } catch (error) {
      failed.abort(error);
      throw error;
    }
  });
  await Promise.allSettled(all);
  failed.signal.throwIfAborted();
  return Promise.all(all);
}
