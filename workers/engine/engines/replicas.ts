/** Several samplers with the same weights, such as one on each GPU of a machine, as one sampler. */
import { at } from '../../../core/at.ts';
import { allOf, merged } from '../../../core/parallel.ts';
import type { Call, StateSource } from '../../../core/ports/policy.ts';
import type {
  DecodedTokens,
  GenerateRequest,
  NamedWeights,
  OwningSampler,
  SamplerRoom,
} from '../../../core/ports/sampler.ts';
import type { WeightsFormat } from '../../../core/parameters.ts';

/** A sampler beside another one, whose weights it can take. */
export interface Follower extends OwningSampler {
  /** Takes the weights that the other one has now, and drops the samples in flight. */
  follow(call?: Call): Promise<void>;
}

export class Replicas implements OwningSampler {
  /** Resolves when one of them has ended: then none is left. */
  readonly exited: Promise<void>;
  readonly #first: OwningSampler;
  readonly #followers: readonly Follower[];
  readonly #members: readonly OwningSampler[];
  /** Maps a live sample to the member that makes it. */
  readonly #places = new Map<number, OwningSampler>();

  /** Takes the samplers over: they end with this one. `followers` take the weights of `first`. */
  constructor(first: OwningSampler, followers: readonly Follower[]) {
    this.#first = first;
    this.#followers = followers;
    this.#members = [first, ...followers];
    const one = Promise.race(this.#members.map((member) => member.exited));
    this.exited = one.then(() => this.close()).catch(() => {}); // they were to end anyway
  }

  get parameters() {
    return this.#first.parameters;
  }

  async use(source: StateSource, named: NamedWeights, call?: Call): Promise<string> {
    await this.pause();
    const digest = await this.#first.use(source, named, call);
    await allOf(this.#followers.map((follower) => follower.follow(call)));
    return digest;
  }

  readPublished(format: WeightsFormat, start: number, into: Uint8Array): Promise<void> {
    const read = this.#first.readPublished?.(format, start, into);
    if (read === undefined) throw new Error('these samplers do not give their weights');
    return read;
  }

  async makeRoom({ maxSeqs, maxModelLen }: SamplerRoom): Promise<void> {
    const share = Math.ceil(maxSeqs / this.#members.length);
    await this.#each((member) => member.makeRoom({ maxSeqs: share, maxModelLen }));
  }

  /** The samples of a prompt go to one member, which computes the prompt once. */
  async *generate(requests: readonly GenerateRequest[]): AsyncGenerator<DecodedTokens> {
    const parts = new Map<OwningSampler, GenerateRequest[]>();
    for (const request of requests) {
      const member = this.#leastBusy();
      parts.set(member, [...(parts.get(member) ?? []), request]);
      for (const { key } of request.samples) this.#places.set(key, member);
    }
    try {
      for await (const decoded of merged([...parts].map(([member, own]) => member.generate(own)))) {
        decoded.finish.forEach((finish, i) => finish !== 0 && this.#places.delete(at(decoded.keys, i)));
        yield decoded;
      }
    } finally {
      for (const { samples } of requests) for (const { key } of samples) this.#places.delete(key);
    }
  }

  async abort(key: number): Promise<void> {
    const member = this.#places.get(key);
    this.#places.delete(key);
    await member?.abort(key);
  }

  pause(): Promise<void> {
    return this.#each((member) => member.pause());
  }

  resume(): Promise<void> {
    return this.#each((member) => member.resume());
  }

  close(): Promise<void> {
    return this.#each((member) => member.close());
  }

  async #each(work: (member: OwningSampler) => Promise<void>): Promise<void> {
    await allOf(this.#members.map(work));
  }

  /** The first of those with the fewest live samples. */
  #leastBusy(): OwningSampler {
    const counts = new Map(this.#members.map((member) => [member, 0]));
    for (const member of this.#places.values()) counts.set(member, (counts.get(member) ?? 0) + 1);
    const fewest = Math.min(...counts.values());
    return at(
      this.#members.filter((member) => counts.get(member) === fewest),
      0,
    );
  }
}
