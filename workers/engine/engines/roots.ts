/** Digests of what an engine has in memory, whose blocks the engine itself hashes. */
import type { Digest } from '../../../core/ids.ts';
import type { Call, PolicyEngine } from '../../../core/ports/policy.ts';
import type { BlockHash, WeightsFormat } from '../../../core/parameters.ts';
import { bytesOfDtype, publishedBytes } from '../../../core/records/publications.ts';
import { blockBytes, treeRoot } from '../../../log/objects/digest.ts';
import type { PartRoots } from '../../../log/objects/digest.ts';

/** What can hash its own state. */
type Hashed = Pick<PolicyEngine, 'parts' | 'parameters' | 'blockDigests' | 'publishedDigests'>;

/** Root of a part of the state, whose blocks the engine hashes. */
export async function rootOf(engine: Hashed, name: string, hash: BlockHash, call?: Call): Promise<Digest> {
  const part = engine.parts.find((one) => one.name === name);
  if (part === undefined) throw new Error(`a state has no part ${name}`);
  const blocks = await engine.blockDigests(name, blockBytes, hash, call);
  return treeRoot(part.elements * bytesOfDtype[part.dtype], blocks, hash);
}

/** Roots of all parts of a component's state. */
export async function rootsOf(engine: Hashed, hash: BlockHash, call?: Call): Promise<PartRoots> {
  const roots: Record<string, Digest> = {};
  for (const { name } of engine.parts) roots[name] = await rootOf(engine, name, hash, call);
  return roots;
}

/** Digest of a publication of the engine's weights. `hash`: of the blocks of fp32 values. */
export async function publicationRoot(
  engine: Hashed,
  format: WeightsFormat,
  hash: BlockHash,
  call?: Call,
): Promise<Digest> {
  if (format === 'F32') return rootOf(engine, 'weights', hash, call);
  return treeRoot(publishedBytes(engine.parameters, format), await engine.publishedDigests(blockBytes, call), 'blake3');
}
