/** The Hugging Face hub, by its own client. */
import { HubApiError, downloadFile, listFiles, modelInfo } from '@huggingface/hub';
import { InvalidInputError } from '../../core/errors.ts';
import { explained, type HubAnswer } from './explained.ts';
import { chooseFiles, type HubFile } from './files.ts';
import type { Hub, HubCommit, HubModel, HubPlace } from './hub.ts';
import type { HubSettings } from './settings.ts';
import { HuggingFaceCache } from './shared-cache.ts';

export class HuggingFace implements Hub {
  readonly prefix = '';
  readonly folder = '';
  readonly shared: HuggingFaceCache;
  readonly #settings: HubSettings;

  constructor(settings: HubSettings) {
    this.#settings = settings;
    this.shared = new HuggingFaceCache(settings.sharedCache);
  }

  /** The commit that a branch, tag or commit points to now. */
  async commitOf({ name, revision }: HubModel): Promise<HubCommit> {
    const { sha: commit } = await this.#explained({ name, revision }, () =>
      modelInfo({ ...this.#common(), name, revision, additionalFields: ['sha'] }),
    );
    const model = { name, revision: commit };
    return {
      name,
      commit,
      files: async () => chooseFiles(await this.files(model), name),
      read: (file, from) => this.read(model, file, from),
    };
  }

  fetchCommand({ name, revision }: HubModel): string {
    return `HF_HUB_OFFLINE=0 hf download ${name}${revision === 'main' ? '' : ` --revision ${revision}`}`;
  }

  /** Files at the top of the repository. */
  async files(model: HubModel): Promise<HubFile[]> {
    return this.#explained(model, async () => {
      const files: HubFile[] = [];
      for await (const entry of listFiles({ ...this.#common(), repo: model.name, revision: model.revision })) {
        if (entry.type !== 'file' || entry.path.includes('/') || entry.path.includes('\\')) continue;
        const digest =
          entry.lfs === undefined
            ? entry.oid === undefined
              ? undefined
              : ({ type: 'git', hex: entry.oid } as const)
            : ({ type: 'sha256', hex: entry.lfs.oid } as const);
        files.push({ path: entry.path, size: entry.lfs?.size ?? entry.size, digest });
      }
      return files;
    });
  }

  /** The bytes of a file from a position on. */
  async read(model: HubModel, file: HubFile, from: number): Promise<AsyncIterable<Uint8Array>> {
    const blob = await this.#explained(model, () =>
      downloadFile({ ...this.#common(), repo: model.name, revision: model.revision, path: file.path, xet: false }),
    );
    if (blob === null)
      throw new InvalidInputError(`${model.name}: ${file.path} is listed at ${model.revision}, but missing`);
    return blob.slice(from, blob.size).stream();
  }

  #common(): { hubUrl: string; accessToken?: string; fetch?: typeof fetch } {
    const { hubUrl, token, fetch } = this.#settings;
    return { hubUrl, ...(token !== undefined && { accessToken: token }), ...(fetch && { fetch }) };
  }

  async #explained<T>(model: HubModel, call: () => Promise<T>): Promise<T> {
    return explained(this.#place(), model, answerOf, async () => {
      try {
        return await call();
      } catch (cause) {
        if (!(cause instanceof TypeError && cause.message.includes('access token'))) throw cause;
        throw new InvalidInputError(
          'the token of HF_TOKEN or `hf auth login` does not look like an access token (hf_…)',
          { cause },
        );
      }
    });
  }

  #place(): HubPlace {
    const { hubUrl: url, token } = this.#settings;
    return {
      url,
      unknown: 'Check name and revision. A local folder begins with "./", "/" or "~/".',
      noAccess: (name) =>
        token === undefined
          ? 'Set HF_TOKEN to an access token, or type: hf auth login'
          : `The token does not give access: accept the terms on ${url}/${name}, or set HF_TOKEN to another token.`,
    };
  }
}

const answerOf = (cause: unknown): HubAnswer | undefined =>
  cause instanceof HubApiError ? { status: cause.statusCode, message: `it answered ${cause.statusCode}` } : undefined;
