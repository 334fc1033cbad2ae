/**
 * Values that are not known, because nothing is executed. In a text such a value is a hole: a number between two NUL
 * characters, which no script can contain. So texts can be joined, split and compared as usual.
 */

/** Why a value is not known, and where. */
export interface Hole {
  readonly line: number;
  /** `the output of "date +%m%d"`. */
  readonly reason: string;
}

export class Holes {
  readonly #holes: Hole[] = [];

  /** The text that stands for a value which is not known. */
  make(line: number, reason: string): string {
    this.#holes.push({ line, reason });
    return `\0${this.#holes.length - 1}\0`;
  }

  /** The holes in a text, in order. */
  in(text: string): Hole[] {
    return [...text.matchAll(HOLE)].flatMap(([, index]) => this.#holes[Number(index)] ?? []);
  }
}

const HOLE = /\0(\d+)\0/g;

export function hasHole(text: string): boolean {
  return text.includes('\0');
}

/** The text with its holes removed. */
export function withoutHoles(text: string): string {
  return text.replace(HOLE, '');
}
