/** Asks a sampler of the user's own for the first weights of the rows, when its run is created. */
import type { Digest } from '../../core/ids.ts';
import { canonicalJson } from '../../core/canonical.ts';
import type { Store } from '../../core/ports/store.ts';
import type { Recipe } from '../../core/recipe/index.ts';
import type { OwnSamplerModule } from '../../core/records/schema.ts';
import type { OwnSamplerRow } from '../../core/rl/own/types.ts';
import { encodeSampling } from '../../core/wire/own-sampler.ts';
import { OwnModule } from '../../infra/own-modules/own-module.ts';
import { sha256 } from '../../log/objects/digest.ts';
import type { CheckedModule } from '../inputs/own-modules.ts';
import { storedRows } from '../inputs/stored-rows.ts';

export interface StartedSampler {
  readonly input: OwnSamplerModule;
  /** The blobs that it names: code and first weights. */
  readonly blobs: readonly Uint8Array[];
}

/** Undefined where none of the modules is a sampler. `train`: stored rows. Throws InvalidInputError when it fails. */
export async function startedSampler(
  modules: readonly CheckedModule[],
  { seed }: Recipe,
  { train, store }: { readonly train: Digest; readonly store: Store },
): Promise<StartedSampler | undefined> {
  const found = modules.find(({ kind }) => kind === 'sampler');
  if (found === undefined) return undefined;
  const { input, code } = found;
  const facts: OwnSamplerRow[] = [];
  for await (const { dataSource, groundTruth, extraInfo } of storedRows(train, store))
    facts.push({ dataSource, groundTruth, extraInfo });
  const module = await OwnModule.open({ kind: 'sampler', fileName: input.fileName, source: code });
  try {
    const call = { seed: seed >>> 0, iteration: 0, rows: facts.length, facts, results: [], state: null };
    const first = await module.checkSampler(call);
    const of = { iteration: 0, parentState: '', module: input.module, train };
    const start = new TextEncoder().encode(canonicalJson(encodeSampling(first, of)));
    return { input: { ...input, start: sha256(start) }, blobs: [code, start] };
  } finally {
    await module.close();
  }
}

/** What a run must store of modules of the user's own. */
export const blobsOf = (modules: readonly CheckedModule[], sampler: StartedSampler | undefined): Uint8Array[] => [
  ...modules.filter(({ kind }) => kind !== 'sampler').map(({ code }) => code),
  ...(sampler?.blobs ?? []),
];
