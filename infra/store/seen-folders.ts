/**
 * The folders in which this process has found or removed objects since they were last synced. An object that another
 * process creates can be read before that process has synced the folder. If it dies in between, a power cut can still take
 * the object away from who has read it.
 */
export class SeenFolders {
  readonly #syncFolder: (folder: string) => Promise<void>;
  readonly #folders = new Set<string>();
  #last: Promise<void> = Promise.resolve();

  constructor(syncFolder: (folder: string) => Promise<void>) {
    this.#syncFolder = syncFolder;
  }

  add(folder: string): void {
    this.#folders.add(folder);
  }

  /** What was seen before the call survives a power cut when this returns. A folder that cannot be synced is tried again by the next call. */
  sync(): Promise<void> {
    // One after the other: the folders of a sync that has not ended are no longer in the set.
    this.#last = this.#last.catch(() => {}).then(() => this.#syncAll());
    return this.#last;
  }

  async #syncAll(): Promise<void> {
    const folders = [...this.#folders];
    this.#folders.clear();
    const outcomes = await Promise.allSettled(folders.map((folder) => this.#syncOne(folder)));
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
  }

  async #syncOne(folder: string): Promise<void> {
    try {
      await this.#syncFolder(folder);
    } catch (error) {
      this.add(folder);
      throw error;
    }
  }
}
