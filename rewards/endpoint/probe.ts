/** Is there a service at the address, and does it serve the model? Asked before a run starts, outside of its limits. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { baseUrl, chatUrl, shownUrl, type EndpointSettings } from '../../core/endpoint.ts';
import { errorToJson, InvalidInputError } from '../../core/errors.ts';
import { redactor } from '../host/redact.ts';
import { namedVariables, secretOf } from '../host/secrets.ts';
import { send, type HttpAnswer, type Ways } from './post.ts';

const answerMs = 10_000;
/** A server may load the model when it is first asked for it. */
const firstAnswerMs = 120_000;
const shownModels = 8;

/**
 * What it found, as a text. @throws InvalidInputError when nothing answers, the key is refused or the model is not
 * served; UnfitError `MissingSecret`.
 */
export async function probeEndpoint(endpoint: EndpointSettings, env: NodeJS.ProcessEnv, ways?: Ways): Promise<string> {
  const url = endpoint.url ?? '';
  return endpoint.question === undefined && endpoint.model === undefined
    ? reach(url, ways?.proxyOf(new URL(url)))
    : new ChatProbe(endpoint, url, env, ways).ask();
}

class ChatProbe {
  readonly #endpoint: EndpointSettings;
  readonly #url: string;
  readonly #ways: Ways | undefined;
  readonly #headers: Record<string, string>;
  readonly #clean: (text: string) => string;

  constructor(endpoint: EndpointSettings, url: string, env: NodeJS.ProcessEnv, ways: Ways | undefined) {
    const { apiKey } = endpoint;
    this.#ways = ways;
    this.#endpoint = endpoint;
    this.#url = url;
    this.#clean = redactor(namedVariables({ apiKey }, env));
    this.#headers = { 'content-type': 'application/json' };
    if (apiKey !== undefined) this.#headers['authorization'] = `Bearer ${secretOf(apiKey.slice('env:'.length), env)}`;
  }

  async ask(): Promise<string> {
    const models = await this.#models();
    const { model } = this.#endpoint;
    const shown = shownUrl(this.#url);
    if (model === undefined) return `${shown} answers`;
    if (models?.includes(model)) return `${shown} serves ${model}`;
    // Some services have no list, or serve models that are not on it.
    const answer = await this.#send('POST', chatUrl(this.#url), firstAnswerMs, {
      model,
      messages: [{ role: 'user', content: '1' }],
      max_tokens: 1,
    });
    if (answer.status < 300 || answer.status === 429) return `${shown} serves ${model}`;
    const listed = (models ?? []).slice(0, shownModels).join(', ');
    throw new InvalidInputError(
      `${shown} does not serve the model ${model}: HTTP ${answer.status} ${this.#start(answer.text)}`,
      {
        where: 'reward.endpoint.model',
        hint: listed === '' ? this.#command(chatUrl(this.#url)) : `it lists ${listed}: reward.endpoint.model=…`,
      },
    );
  }

  /** undefined when it lists none. */
  async #models(): Promise<readonly string[] | undefined> {
    const url = `${baseUrl(this.#url)}/models`;
    const { status, text } = await this.#send('GET', url, answerMs);
    if (status === 401 || status === 403) {
      const { apiKey } = this.#endpoint;
      throw new InvalidInputError(`${shownUrl(this.#url)} refuses the key: HTTP ${status} ${this.#start(text)}`, {
        where: 'reward.endpoint.api_key',
        hint: apiKey === undefined ? 'reward.endpoint.api_key=env:NAME' : `set ${apiKey.slice('env:'.length)}`,
      });
    }
    try {
      const { data } = JSON.parse(text) as { data?: unknown };
      const ids = (Array.isArray(data) ? data : []).map((one: unknown) => (one as { id?: unknown } | null)?.id);
      return status < 300 ? ids.filter((id) => typeof id === 'string') : undefined;
    } catch {
      return undefined;
    }
  }

  async #send(method: string, url: string, timeoutMs: number, body?: object): Promise<HttpAnswer> {
    const text = body === undefined ? undefined : JSON.stringify(body);
    try {
      const request = { method, url, headers: this.#headers, body: text, timeoutMs };
      return await send(request, new AbortController().signal, this.#ways);
    } catch (error) {
      throw unreachable(this.#url, error, this.#command(url));
    }
  }

  #command(url: string): string {
    const { apiKey } = this.#endpoint;
    const key = apiKey === undefined ? '' : ` -H "Authorization: Bearer $${apiKey.slice('env:'.length)}"`;
    return `curl -sS${key} ${shownUrl(url)}`;
  }

  #start(text: string): string {
    return this.#clean(text).trim().slice(0, 200);
  }
}

/**
 * A service of the user's own has no question that may be asked, so its port, or the proxy's, must take a connection.
 */
async function reach(url: string, proxy: URL | undefined): Promise<string> {
  const { hostname, port, protocol } = proxy ?? new URL(url);
  const socket = connect({
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port),
    timeout: answerMs,
  });
  try {
    socket.once('timeout', () => socket.destroy(new Error(`no connection within ${answerMs / 1000} s`)));
    await once(socket, 'connect');
    return proxy === undefined ? `${shownUrl(url)} takes connections` : `its proxy ${proxy.host} takes connections`;
  } catch (error) {
    throw unreachable(url, error, `curl -sS ${shownUrl(url)}`);
  } finally {
    socket.destroy();
  }
}

function unreachable(url: string, error: unknown, command: string): InvalidInputError {
  return new InvalidInputError(`nothing answers at ${shownUrl(url)}: ${errorToJson(error).message}`, {
    where: 'reward.endpoint.url',
    hint: `start the service; this must answer: ${command}`,
    cause: error,
  });
}
