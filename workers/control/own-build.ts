/** The build of this control process, which machines that come get from a store. */
import { InvalidInputError } from '../../core/errors.ts';
import type { Store } from '../../core/ports/store.ts';
import { publishBuild, readBuild } from '../../infra/fleet/builds.ts';
import type { Build } from '../../infra/fleet/builds.ts';
import { packageRoot } from '../../infra/home.ts';
import { servesStore } from '../../infra/stack/driven-runs.ts';
import { openExistingStore } from '../../infra/store/open.ts';

export class OwnBuild {
  readonly #home: string;
  #build: Promise<Build> | undefined;
  /** Publications by store, because machines that come at once wait for the same writes. */
  readonly #publishing = new Map<string, Promise<string>>();

  constructor(home: string) {
    this.#home = home;
  }

  /** Resolves with its digest when it is in the store. */
  publish(url: string): Promise<string> {
    const work = this.#publishing.get(url) ?? this.#put(url).finally(() => this.#publishing.delete(url));
    this.#publishing.set(url, work);
    return work;
  }

  async #put(url: string): Promise<string> {
    this.#build ??= readBuild(packageRoot());
    const build = await this.#build.catch((error: unknown) => {
      this.#build = undefined; // the next machine tries again
      throw error;
    });
    await publishBuild(await openServed(this.#home, url), build);
    return build.digest;
  }
}

/** A new store has no runs yet, so it is opened otherwise than for a job. */
export async function openServed(home: string, url: string): Promise<Store> {
  if (await servesStore(home, url)) return openExistingStore(url);
  throw new InvalidInputError(`expected a store of this stack, got ${url}, which the stack does not know`, {
    hint: 'petrel fleet token --pool <name> --store <store> makes it known',
  });
}
