/** The weights of a sampler in a file in memory, which this process fills and a rank reads. */
import type { BlockHash, ComputeType, EngineParameter, WeightsFormat } from '../../../../core/parameters.ts';
import type { Call, StateSource } from '../../../../core/ports/policy.ts';
import { PublishedFile } from '../published-file.ts';
import type { RankGroup } from './rank-group.ts';
import { laidOut } from './rank-state.ts';
import type { NamedShape } from './rank-state.ts';
import type { RankWeights } from './rank-weights.ts';

export class FileWeights implements RankWeights {
  readonly parameters: readonly EngineParameter[];
  readonly #group: RankGroup;
  readonly #path: string;
  readonly #threads: number;
  #file: PublishedFile | undefined;

  constructor(
    group: RankGroup,
    named: readonly NamedShape[],
    { compute, threads }: { readonly compute: ComputeType; readonly threads: number },
    path: string,
  ) {
    this.#group = group;
    this.#path = path;
    this.#threads = threads;
    this.parameters = laidOut(named, compute);
  }

  async use(source: StateSource, format: WeightsFormat, hash: BlockHash, call?: Call): Promise<string> {
    const file = await this.#laidOut(format);
    if (source.type === 'folder') {
      if (format !== 'F32') throw new Error(`a folder is loaded in F32, not in ${format}`);
      const { folder, newHead = false } = source;
      await this.#group.exclusive('loadFolder', { folder, newHead }, call);
    } else await file.fill(source, hash, call);
    // What is not hashed yet is hashed beside the load: what was loaded is known when both have ended.
    const [digest] = await Promise.all([
      file.digest(hash, call, this.#threads),
      this.#group.exclusive('loaded', {}, call),
    ]);
    return digest;
  }

  async readPublished(format: WeightsFormat, start: number, into: Uint8Array): Promise<void> {
    if (this.#file?.format !== format) throw new Error(`the sampler has no weights in ${format}`);
    await this.#file.read(start, into);
  }

  async close(): Promise<void> {
    await this.#file?.close();
    this.#file = undefined;
  }

  /** The file keeps its pages where the format stays. */
  async #laidOut(format: WeightsFormat): Promise<PublishedFile> {
    if (this.#file?.format === format) return this.#file;
    await this.close();
    this.#file = await PublishedFile.create(this.#path, this.parameters, format);
    return this.#file;
  }
}
