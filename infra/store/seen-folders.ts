/**
 * The folders in which this process has found or removed objects since the last sync. An object that another process
 * creates can be read before that process has synced the folder. If that process dies in between, a power cut can still
 * remove the object that this one has read.
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

  /**
   * When this returns, everything that was seen before the call survives a power cut. A folder that cannot be synced is
   * tried again by the next call.
   */
  sync(): Promise<void> {
    // Syncs run one after the other, because a running sync has already taken its folders out of the set.
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
