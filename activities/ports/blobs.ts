/** Objects that are named by the digest of their content. */
import type { Components } from '../../core/records/components.ts';
import type { CheckpointManifest, ComponentState } from '../../core/records/schema.ts';
import type { Digest, RunId } from '../../core/ids.ts';
import type { Store } from '../../core/ports/store.ts';

export interface BlobPorts {
  /** Throws PauseError `DamagedBlob` or `MissingBlob`. So does `getJsonBlob`. */
  readonly getBlob: (store: Store, runId: RunId, digest: Digest) => Promise<Uint8Array>;
  readonly putBlob: (store: Store, runId: RunId, bytes: Uint8Array) => Promise<Digest>;
  readonly getJsonBlob: (store: Store, runId: RunId, digest: Digest) => Promise<unknown>;
  readonly putJsonBlob: (store: Store, runId: RunId, value: unknown) => Promise<Digest>;
  /** Digest of a run's state, from those of its components. */
  readonly runStateOf: (components: Components<Pick<ComponentState, 'stateDigest'>>) => Digest;
  /** Writes the manifest of a checkpoint; resolves with its key. */
  readonly putManifest: (store: Store, manifest: CheckpointManifest) => Promise<string>;
  /** Throws PauseError `MissingBlob` when a shard of the manifest is not in the store. */
  readonly needShards: (store: Store, runId: string, manifest: Pick<CheckpointManifest, 'components'>) => Promise<void>;
}
