/** The metadata service of an EC2 instance, which only its own machine can reach (IMDSv2). */
import { TerminalError } from '../../core/errors.ts';

/** The name that AWS's SDKs use. */
export const metadataVariable = 'AWS_EC2_METADATA_SERVICE_ENDPOINT';
export const linkLocal = 'http://169.254.169.254';

const tokenSeconds = 6 * 3600;
/** The service is on the machine itself, so a slower answer counts as lost. */
const answerMs = 2_000;

/** Id of the instance on which this process runs. Throws TerminalError `NoMetadata`. */
export async function ownInstanceId(endpoint = process.env[metadataVariable] ?? linkLocal): Promise<string> {
  const id = await new MetadataService(endpoint).get('/latest/meta-data/instance-id').catch((cause: unknown) => {
    throw new TerminalError(
      'NoMetadata',
      `expected the metadata service of an instance at ${endpoint}: ${String(cause)}`,
      {
        hint: 'this token is for the machines of one launch; petrel fleet token --pool <name> makes one for others',
        cause,
      },
    );
  });
  if (id !== undefined) return id;
  throw new TerminalError('NoMetadata', `the metadata service at ${endpoint} does not know its instance`);
}

/** Reads need a token. One is requested when there is none or it has expired. */
export class MetadataService {
  readonly #endpoint: string;
  #token: string | undefined;

  constructor(endpoint: string) {
    this.#endpoint = endpoint.replace(/\/+$/, '');
  }

  /** undefined: there is no such entry. */
  async get(path: string): Promise<string | undefined> {
    for (const attempt of [1, 2]) {
      this.#token ??= await this.#newToken();
      const answer = await fetch(this.#endpoint + path, {
        headers: { 'X-aws-ec2-metadata-token': this.#token },
        signal: AbortSignal.timeout(answerMs),
      });
      if (answer.ok) return answer.text();
      await answer.body?.cancel();
      if (answer.status === 404) return undefined;
      this.#token = undefined;
      if (answer.status !== 401 || attempt === 2) throw new Error(`${path}: status ${answer.status}`);
    }
    return undefined;
  }

  async #newToken(): Promise<string> {
    const headers = { 'X-aws-ec2-metadata-token-ttl-seconds': String(tokenSeconds) };
    const answer = await fetch(`${this.#endpoint}/latest/api/token`, {
      method: 'PUT',
      headers,
      signal: AbortSignal.timeout(answerMs),
    });
    if (!answer.ok) throw new Error(`no token: status ${answer.status}`);
    return answer.text();
  }
}
