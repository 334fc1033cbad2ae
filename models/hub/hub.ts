/** What hubs differ in: where models are listed, read and kept. All else of a fetch is the same for each hub. */
import type { HubFile } from './files.ts';
import type { Snapshot } from './snapshot.ts';

export interface HubModel {
  readonly name: string;
  readonly revision: string;
}

/** A model as a revision has it now. */
export interface HubCommit {
  readonly name: string;
  /** Names the content, in hexadecimal digits: the same commit has the same files. */
  readonly commit: string;
  /** Files that the model needs. Throws InvalidInputError when one that it must have is missing. */
  files(): Promise<readonly HubFile[]>;
  /** The bytes of a file from a position on. */
  read(file: HubFile, from: number): Promise<AsyncIterable<Uint8Array>>;
}

/** What the hub's own Python client has fetched. It is used where it lies; nothing is written there. */
export interface SharedCache {
  /** What was last fetched of a branch, tag or commit; undefined when nothing was. */
  snapshotOf(model: HubModel): Promise<Snapshot | undefined>;
  /** The files of a commit; undefined when the cache has none of them. */
  snapshotAt(name: string, commit: string): Promise<Snapshot | undefined>;
}

/** Where a hub is, and the words of its errors. */
export interface HubPlace {
  readonly url: string;
  /** What to do about an unknown model. */
  readonly unknown: string;
  /** What to do about a model to which the token, or no token, gives no access. */
  readonly noAccess: (name: string) => string;
}

/** A hub; its methods throw InvalidInputError, or RetryableError when it gives no answer. */
export interface Hub {
  /** What the name of a model begins with in a recipe; empty for Hugging Face. */
  readonly prefix: string;
  /** Folder of its models in petrel's own cache. */
  readonly folder: string;
  readonly shared: SharedCache;
  commitOf(model: HubModel): Promise<HubCommit>;
  /** What to type where there is a network. */
  fetchCommand(model: HubModel): string;
}

/** True for a full commit, which never moves. */
export const isCommit = (revision: string): boolean => /^[\da-f]{40}$/.test(revision);
