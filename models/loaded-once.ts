/** What is read from a folder whose files never change, read once per thread. A failure is not kept. */
export function loadedOnce<T>(load: (folder: string) => Promise<T>): (folder: string) => Promise<T> {
  const loaded = new Map<string, Promise<T>>();
  return (folder) => {
    let found = loaded.get(folder);
    if (found === undefined) {
      found = load(folder);
      loaded.set(folder, found);
      found.catch(() => loaded.delete(folder));
    }
    return found;
  };
}
