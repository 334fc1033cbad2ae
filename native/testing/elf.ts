/** The symbols that a shared library of x86-64 takes from others, with the versions that it asks for. */

export interface NeededSymbol {
  readonly name: string;
  /** Such as GLIBC_2.14; empty where it asks for none. */
  readonly version: string;
}

/** Types of sections, as in /usr/include/elf.h. */
const sectionTypes = { dynamicSymbols: 11, versionsOfSymbols: 0x6fffffff, neededVersions: 0x6ffffffe };
const symbolBytes = 24;

interface Section {
  readonly type: number;
  readonly offset: number;
  readonly size: number;
  /** The section that this one refers to: its names. */
  readonly link: number;
}

/** Reads the dynamic symbols that are not defined in `file`. Throws RangeError where it ends too early. */
export function neededSymbols(file: Buffer): NeededSymbol[] {
  const sections = sectionsOf(file);
  const find = (type: number) => sections.find((section) => section.type === type);
  const symbols = find(sectionTypes.dynamicSymbols);
  const versions = find(sectionTypes.versionsOfSymbols);
  if (symbols === undefined || versions === undefined) return [];
  const names = versionNames(file, sections, find(sectionTypes.neededVersions));
  const texts = sections[symbols.link]?.offset ?? 0;
  return Array.from({ length: symbols.size / symbolBytes }, (_, i) => i).flatMap((i) => {
    const at = symbols.offset + i * symbolBytes;
    const name = textAt(file, texts + file.readUInt32LE(at));
    const isDefined = file.readUInt16LE(at + 6) !== 0;
    const version = names.get(file.readUInt16LE(versions.offset + 2 * i) & 0x7fff) ?? '';
    return isDefined || name === '' ? [] : [{ name, version }];
  });
}

function sectionsOf(file: Buffer): Section[] {
  const [first, size, count] = [Number(file.readBigUInt64LE(40)), file.readUInt16LE(58), file.readUInt16LE(60)];
  return Array.from({ length: count }, (_, i) => {
    const at = first + i * size;
    return {
      type: file.readUInt32LE(at + 4),
      offset: Number(file.readBigUInt64LE(at + 24)),
      size: Number(file.readBigUInt64LE(at + 32)),
      link: file.readUInt32LE(at + 40),
    };
  });
}

/** Names of versions by their numbers: a list of libraries, each with a list of versions. */
function versionNames(file: Buffer, sections: readonly Section[], needed: Section | undefined): Map<number, string> {
  const found = new Map<number, string>();
  if (needed === undefined) return found;
  const texts = sections[needed.link]?.offset ?? 0;
  for (let library = needed.offset, more = -1; more !== 0; library += more) {
    for (let version = library + file.readUInt32LE(library + 8), next = -1; next !== 0; version += next) {
      found.set(file.readUInt16LE(version + 6), textAt(file, texts + file.readUInt32LE(version + 8)));
      next = file.readUInt32LE(version + 12);
    }
    more = file.readUInt32LE(library + 12);
  }
  return found;
}

function textAt(file: Buffer, at: number): string {
  return file.toString('latin1', at, file.indexOf(0, at));
}
