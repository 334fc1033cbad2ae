/**
 * ModelScope, by the addresses that its own Python library asks. It names no commits of branches, so the SHA-256 of a
 * listing stands for one: a file that changes between listing and download is refused by its checksum.
 */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { InvalidInputError } from '../../core/errors.ts';
import { explained } from './explained.ts';
import { chooseFiles, type HubFile } from './files.ts';
import { type Hub, type HubCommit, type HubModel, type HubPlace, isCommit } from './hub.ts';
import { ModelScopeCache } from './modelscope-cache.ts';
import type { HubSettings } from './settings.ts';

const listing = z.object({
  Code: z.number(),
  Message: z.string().nullish(),
  Data: z
    .object({
      Files: z
        .array(
          z.object({
            Path: z.string(),
            Type: z.string(),
            Size: z.number().int().nonnegative(),
            Sha256: z.string().nullish(),
          }),
        )
        .nullish(),
    })
    .nullish(),
});

type ModelScopeSettings = Pick<HubSettings, 'hubUrl' | 'token' | 'sharedCache' | 'fetch'>;

export class ModelScope implements Hub {
  readonly prefix = 'modelscope:';
  readonly folder = 'modelscope';
  readonly shared: ModelScopeCache;
  readonly #settings: ModelScopeSettings;

  constructor(settings: ModelScopeSettings) {
    this.#settings = settings;
    this.shared = new ModelScopeCache(settings.sharedCache);
  }

  async commitOf(model: HubModel): Promise<HubCommit> {
    const name = `${this.prefix}${model.name}`;
    const files = chooseFiles(await this.#files(model), name);
    return {
      name,
      commit: isCommit(model.revision) ? model.revision : contentOf(files),
      files: async () => files,
      read: (file, from) => this.#read(model, file, from),
    };
  }

  fetchCommand({ name, revision }: HubModel): string {
    return `modelscope download ${name}${revision === 'master' ? '' : ` --revision ${revision}`}`;
  }

  async #files(model: HubModel): Promise<HubFile[]> {
    return this.#explained(model, async () => {
      const response = await this.#get(model, 'repo/files', { Recursive: 'true' });
      const { Code: code, Message: message, Data: data } = await listed(response);
      if (code !== 200) throw new Answer(code, message ? `${code}: ${message}` : `${code}`);
      const files = (data?.Files ?? []).filter(({ Type: type, Path: path }) => type !== 'tree' && !/[/\\]/.test(path));
      return files.map(({ Path: path, Size: size, Sha256: sha256 }) => ({
        path,
        size,
        digest: sha256 ? { type: 'sha256', hex: sha256.toLowerCase() } : undefined,
      }));
    });
  }

  async #read(model: HubModel, file: HubFile, from: number): Promise<AsyncIterable<Uint8Array>> {
    return this.#explained(model, async () => {
      const range = from > 0 ? { range: `bytes=${from}-` } : {};
      // A compressed answer has no ranges of the file.
      const headers = { 'accept-encoding': 'identity', ...range };
      const { status, body } = await this.#get(model, 'repo', { FilePath: file.path }, headers).catch(
        (cause: unknown) => {
          if (!(cause instanceof Answer && cause.status === 404)) throw cause;
          const { name, revision } = model;
          throw new InvalidInputError(`${this.prefix}${name}: ${file.path} is listed at ${revision}, but missing`, {
            cause,
          });
        },
      );
      if (body === null) throw new Answer(status, `${status} without a body`);
      return status === 206 ? body : without(from, body);
    });
  }

  /** The cookie is what older addresses want. On its way to another host, `fetch` leaves out both. */
  async #get(
    { name, revision }: HubModel,
    what: string,
    query: Readonly<Record<string, string>>,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Response> {
    const { hubUrl, token, fetch: ask = fetch } = this.#settings;
    const asked = new URLSearchParams({ Revision: revision, ...query });
    const access = token === undefined ? {} : { authorization: `Bearer ${token}`, cookie: `m_session_id=${token}` };
    const response = await ask(`${hubUrl}/api/v1/models/${name}/${what}?${asked}`, {
      headers: { ...headers, ...access },
    });
    if (response.ok) return response;
    await response.body?.cancel();
    throw new Answer(response.status, String(response.status));
  }

  async #explained<T>(model: HubModel, call: () => Promise<T>): Promise<T> {
    return explained(this.#place(), model, (cause) => (cause instanceof Answer ? cause : undefined), call);
  }

  #place(): HubPlace {
    const { hubUrl: url, token } = this.#settings;
    return {
      url,
      unknown:
        token === undefined
          ? 'Check name and revision. A private model needs MODELSCOPE_API_TOKEN.'
          : 'Check name and revision, and whether MODELSCOPE_API_TOKEN may see the model.',
      noAccess: (name) =>
        token === undefined
          ? `export MODELSCOPE_API_TOKEN=TOKEN, with a token of ${url}/my/myaccesstoken`
          : `The token does not give access: accept the terms on ${url}/models/${name}, or set MODELSCOPE_API_TOKEN to another token.`,
    };
  }
}

/** An answer that is of no use. */
class Answer extends Error {
  readonly status: number;

  constructor(status: number, what: string, options?: ErrorOptions) {
    super(`it answered ${what}`, options);
    this.status = status;
  }
}

async function listed(response: Response): Promise<z.infer<typeof listing>> {
  const text = await response.text();
  try {
    return listing.parse(JSON.parse(text));
  } catch (cause) {
    const got = JSON.stringify(text.slice(0, 60));
    throw new Answer(response.status, `${got}, expected a list of files as JSON`, { cause });
  }
}

/** The same for the same files, whatever branch or tag leads to them. */
function contentOf(files: readonly HubFile[]): string {
  const lines = files.map(({ path, size, digest }) => JSON.stringify([path, size, digest?.hex]));
  return createHash('sha256').update(lines.toSorted().join('\n')).digest('hex');
}

/** Some servers send the whole file whatever was asked for. Leaves out the bytes that are here already. */
async function* without(count: number, source: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  let left = count;
  for await (const chunk of source) {
    const rest = chunk.subarray(left);
    left = Math.max(0, left - chunk.length);
    if (rest.length > 0) yield rest;
  }
}
