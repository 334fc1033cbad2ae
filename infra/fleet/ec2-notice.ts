/**
 * The notice of a spot instance, from the machine's own metadata service (IMDSv2): `spot/instance-action` is absent until
 * EC2 means to take the machine, then it says what happens when, two minutes before as a rule.
 */
import { z } from 'zod';
import type { NoticeWatch } from './notice.ts';

/** The name that the SDKs of AWS have for it. */
export const metadataVariable = 'AWS_EC2_METADATA_SERVICE_ENDPOINT';
const linkLocal = 'http://169.254.169.254';

const tokenSeconds = 6 * 3600;
/** The service is on the machine itself: what takes longer is lost. */
const answerMs = 2_000;

const instanceAction = z.object({ action: z.string(), time: z.string() });

export interface Ec2NoticeOptions {
  readonly endpoint?: string | undefined;
  /** The notice gives two minutes; EC2 asks not to look more often than needed. */
  readonly pollMs?: number;
  readonly now?: () => number;
  /** Receives a line when the service does not answer as it should, once for each reason. */
  readonly log?: (line: string) => void;
}

export function ec2Notice({
  endpoint = linkLocal,
  pollMs = 2_000,
  now = Date.now,
  log = () => {},
}: Ec2NoticeOptions = {}): NoticeWatch {
  return (onNotice) => {
    const service = new MetadataService(endpoint);
    let timer: NodeJS.Timeout | undefined;
    let ended = false;
    let trouble: string | undefined;
    const look = async (): Promise<void> => {
      try {
        const text = await service.get('/latest/meta-data/spot/instance-action');
        const action = text === undefined ? undefined : instanceAction.parse(JSON.parse(text));
        trouble = undefined;
        if (action !== undefined && !ended) {
          const { time } = action;
          return onNotice({
            reason: `EC2 means to ${action.action} this machine at ${time}`,
            graceMs: Math.max(0, Date.parse(time) - now()),
          });
        }
      } catch (error) {
        const text = error instanceof Error ? error.message : String(error);
        if (text !== trouble) log(`${endpoint} does not say whether this machine stays: ${text}`);
        trouble = text;
      }
      if (!ended) timer = setTimeout(() => void look(), pollMs);
    };
    void look();
    return () => {
      ended = true;
      clearTimeout(timer);
    };
  };
}

/** Reads need a token, which is asked for when there is none or it has expired. */
class MetadataService {
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
