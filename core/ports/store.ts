/** The port of an object store. */

/**
 * The object store. Only `create` can decide anything; all other objects are content-addressed. Objects that `create`
 * and `put` have written survive a power cut once the call returns.
 */
export interface Store {
  readonly url: string;
  /** The URL, and what it does not contain, such as the server: distinguishes stores. */
  readonly place: string;
  /**
   * Conditional create: `created` for one caller, `exists` for all others. The existing object is durable in both
   * cases. It calls `settle` first, so that a record cannot survive a power cut without the objects that its writer had
   * read. At most a few MiB. A caller whose own object exists gets `created`, also after a repeated request. `hold` is
   * awaited before the last byte is sent, so that a test can release many writers at the same time.
   */
  create(key: string, bytes: Uint8Array, hold?: () => Promise<void>): Promise<'created' | 'exists'>;
  /** Writes a blob (its key names its content). Idempotent; readers never see a part of it. */
  put(key: string, bytes: Uint8Array | AsyncIterable<Uint8Array>): Promise<void>;
  /** undefined when absent. `range` is [start, end) in bytes. */
  get(key: string, range?: readonly [number, number]): Promise<Uint8Array | undefined>;
  stream(key: string): Promise<AsyncIterable<Uint8Array> | undefined>;
  /** Size in bytes; undefined when absent. */
  head(key: string): Promise<number | undefined>;
  /**
   * Makes durable what this object has read, found and removed so far, because another process may have written it just
   * before it died. Call this before the facts are passed on, and before anything is removed because of them.
   */
  settle(): Promise<void>;
  /** Keys under a prefix, ascending. Listings may lag, so nothing may depend on a missing entry. */
  list(prefix: string): Promise<string[]>;
  /** Names directly under a prefix that ends in "/", without the prefix; folders end in "/". May lag too. */
  children(prefix: string): Promise<string[]>;
  /**
   * Removes one object. If the key ends in "/", removes every object under it that `only` accepts; by default all.
   * Removing an absent object is no error. Throws TerminalError `OutsideStore` when a symbolic link leads out of the
   * folder.
   */
  remove(key: string, only?: (key: string) => boolean): Promise<void>;
  /** Removes temporary files and unfinished uploads that dead writers left before the given time. Returns how many. */
  removeLeftovers?(before: Date): Promise<number>;
  /** A local path of the object, for memory mapping, when the store is a folder; undefined otherwise. */
  localPath(key: string): string | undefined;
}
