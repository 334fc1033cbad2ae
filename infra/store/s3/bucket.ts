/** A prefix in a bucket with the connection to it: everything that a request to the store needs. */
import type { S3Client } from '@aws-sdk/client-s3';
import { InvalidInputError } from '../../../core/errors.ts';
import type { S3Connection } from './client.ts';
import { describeFailure, statusOf } from './failures.ts';
import { objectName, showS3Url } from './location.ts';
import type { S3Location } from './location.ts';
import { headBucket } from './named-refusal.ts';
import { insist } from './patience.ts';
import type { Patience } from './patience.ts';

export class S3Bucket {
  readonly client: S3Client;
  readonly location: S3Location;
  readonly endpoint: string | undefined;
  readonly patience: Patience;
  readonly url: string;
  readonly #serving: boolean;
  #worked = false;

  /** `serving`: a refusal by the server is thrown as UnfitError. */
  constructor({ client, endpoint, patience }: S3Connection, location: S3Location, serving = false) {
    this.#serving = serving;
    this.client = client;
    this.endpoint = endpoint;
    this.patience = patience;
    this.location = location;
    this.url = showS3Url(location);
  }

  /** Bucket and full key of an object, as every command needs them. */
  at(key: string): { readonly Bucket: string; readonly Key: string } {
    return { Bucket: this.location.bucket, Key: objectName(this.location, key) };
  }

  /** Runs `attempt` with retries; `what` names it in errors. */
  async insist<T>(what: string, attempt: () => Promise<T>): Promise<T> {
    const result = await insist(
      { what, where: this.url, worked: this.#worked, serving: this.#serving },
      this.patience,
      attempt,
    );
    this.#worked = true;
    return result;
  }

  /** Throws when the server, the bucket or the credentials do not work; a person must fix that. */
  async check(): Promise<void> {
    await this.insist('opening the store', async () => {
      try {
        await headBucket(this.client, this.location);
      } catch (error) {
        if (statusOf(error) !== 404) throw error;
        throw new InvalidInputError(
          `${this.url}: there is no bucket ${this.location.bucket}${this.endpoint === undefined ? '' : ` at ${this.endpoint}`}`,
          {
            hint: `Create it, or fix the name in the recipe (${describeFailure(error)})`,
            cause: error,
          },
        );
      }
    });
  }
}
