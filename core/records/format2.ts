/** Parts of records of format 2 whose form has changed, read as format 3. FORMAT.md in this folder lists the differences. */

type Fields = Readonly<Record<string, unknown>>;

/** A numeric profile from the time of one engine: `isa` was the device, and `engine` the build. */
export function profileOf2(stored: unknown): unknown {
  const profile = stored as Fields | null;
  if (typeof profile !== 'object' || profile === null || !('isa' in profile)) return stored;
  const { isa, engine, ...rest } = profile;
  return { ...rest, engine: 'native', device: isa, build: engine };
}
