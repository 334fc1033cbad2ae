/** Wraps the real hub client; its errors say what to do. */
import { HubApiError, downloadFile, listFiles, modelInfo } from '@huggingface/hub';
import { InvalidInputError, RetryableError } from '../../core/errors.ts';
import type { HubFile } from './files.ts';
import type { HubSettings } from './settings.ts';

export interface HubModel {
  readonly name: string;
  readonly revision: string;
}

export class HubClient {
  readonly #settings: HubSettings;

  constructor(settings: HubSettings) {
    this.#settings = settings;
  }

  /** The commit that a branch, tag or commit points to now. */
  async commitOf(model: HubModel): Promise<string> {
    const info = await this.#explained(model, () =>
      modelInfo({ ...this.#common(), name: model.name, revision: model.revision, additionalFields: ['sha'] }),
    );
    return info.sha;
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

  async #explained<T>({ name, revision }: HubModel, call: () => Promise<T>): Promise<T> {
    const { hubUrl, token } = this.#settings;
    try {
      return await call();
    } catch (cause) {
      const status = cause instanceof HubApiError ? cause.statusCode : undefined;
      if (status === 404) {
        throw new InvalidInputError(`${hubUrl} has no model ${name} at ${revision}`, {
          hint: 'Check name and revision. A local folder begins with "./", "/" or "~/".',
          cause,
        });
      }
      if (status === 401 || status === 403) {
        const hint =
          token === undefined
            ? 'Set HF_TOKEN to an access token, or type: hf auth login'
            : `The token does not give access: accept the terms on ${hubUrl}/${name}, or set HF_TOKEN to another token.`;
        throw new InvalidInputError(
          `${hubUrl} gives no access to ${name} (${status}): it is gated, private, or does not exist`,
          { hint, cause },
        );
      }
      if (cause instanceof TypeError && cause.message.includes('access token'))
        throw new InvalidInputError(
          'the token of HF_TOKEN or `hf auth login` does not look like an access token (hf_…)',
          { cause },
        );
      const reason = status === undefined ? reasonOf(cause) : `it answered ${status}`;
      throw new RetryableError('HubUnreachable', `${hubUrl} cannot be read: ${reason}`, {
        hint: 'Try again, or give a local folder.',
        cause,
      });
    }
  }
}

/** The innermost message: fetch wraps what happened. */
function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  return cause.cause instanceof Error
    ? cause.cause.message || ((cause.cause as NodeJS.ErrnoException).code ?? cause.message)
    : cause.message;
}
