/** An engine of another process of which only the state is there: zeros that take no memory. */
import type { EngineParameter } from '../core/parameters.ts';
import type { PolicyEngine, StateCopy } from '../core/ports/policy.ts';
import { partsOf, stateParts } from '../core/records/state-parts.ts';
import { SharedMemory } from '../infra/shared-memory.ts';
import { blockHasher } from '../log/objects/block-hasher.ts';
import { blockBytes, runStateOf, stateDigestsOf, treeRoot } from '../log/objects/digest.ts';
import type { RunDigests } from '../workers/engine/state/state.ts';

type Stated = 'parameters' | 'elements' | 'parts' | 'steps' | 'copy' | 'readPublished';

const hidden = 3584;
const layers = 28;

/** Shaped like Qwen2.5-7B: an embedding and a head of 7 % of the elements each, and layers. */
export class EmptyEngine implements Pick<PolicyEngine, Stated> {
  readonly parameters: readonly EngineParameter[];
  readonly elements: number;
  readonly parts;
  readonly steps = 1;
  readonly #memory = new SharedMemory();

  /** It has about so many elements. */
  constructor(wanted: number) {
    const rows = (share: number) => Math.max(1, Math.round((share * wanted) / hidden));
    const named: readonly (readonly [string, number, 'F32' | 'BF16'])[] = [
      ['lm_head.weight', rows(0.07), 'BF16'],
      ['model.embed_tokens.weight', rows(0.07), 'F32'],
      ...Array.from(
        { length: layers },
        (_, i) => [`model.layers.${String(i).padStart(2, '0')}.weight`, rows(0.86 / layers), 'BF16'] as const,
      ),
    ];
    let offset = 0;
    this.parameters = named.map(([name, count, computed]) => {
      const size = count * hidden;
      const parameter = { name, shape: [count, hidden], offset, size, computed };
      offset += size;
      return parameter;
    });
    this.elements = offset;
    this.parts = partsOf(offset);
  }

  /** The digests of its state. */
  async digests(): Promise<RunDigests> {
    const bytes = 4 * this.elements;
    const hasher = await blockHasher('blake3');
    const leaf = (length: number) => {
      hasher.update(new Uint8Array(length));
      return hasher.digest();
    };
    const whole = leaf(blockBytes);
    const leaves = Array.from({ length: Math.floor(bytes / blockBytes) }, () => whole);
    if (bytes % blockBytes > 0) leaves.push(leaf(bytes % blockBytes));
    const root = treeRoot(bytes, Buffer.concat(leaves), 'blake3');
    const roots = Object.fromEntries(stateParts.map((part) => [part, root]));
    const own = stateDigestsOf(roots, this.steps);
    return {
      stateDigest: runStateOf({ actor: own }),
      weightsDigest: own.weightsDigest,
      components: { actor: { ...own, roots } },
    };
  }

  async copy(): Promise<StateCopy> {
    const bytes = 4 * this.elements;
    this.#memory.write(3 * bytes - 1, new Uint8Array(1)); // what lies before it is a hole
    return { fd: this.#memory.fd, starts: [0, bytes, 2 * bytes], release: () => {} };
  }

  async readPublished(_format: unknown, _start: number, into: Uint8Array): Promise<void> {
    into.fill(0);
  }

  async close(): Promise<void> {
    this.#memory.close();
  }
}
