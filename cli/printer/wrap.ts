/** Text in lines of a width, at blanks where there are any. */
import { printable } from './printable.ts';
import { displayWidth } from './width.ts';

/** Control characters are made visible; line breaks stay. Every line begins with `indent`. */
export function wrapText(text: string, columns: number, indent = ''): string {
  const room = Math.max(8, columns - displayWidth(indent));
  return printable(text)
    .replaceAll('\t', '    ')
    .split('\n')
    .flatMap((line) => wrapLine(line, room))
    .map((line) => (indent + line).trimEnd())
    .join('\n');
}

function wrapLine(line: string, room: number): string[] {
  const lines: string[] = [];
  let current = '';
  let width = 0;
  for (const piece of line.match(/\s+|\S+/gu) ?? []) {
    for (const part of cut(piece, room)) {
      const partWidth = displayWidth(part);
      if (width > 0 && width + partWidth > room) {
        lines.push(current);
        [current, width] = ['', 0];
        if (part.trim() === '') continue; // the line break stands for it
      }
      current += part;
      width += partWidth;
    }
  }
  return [...lines, current];
}

/** A word that is longer than a line. */
function cut(piece: string, room: number): string[] {
  if (displayWidth(piece) <= room) return [piece];
  const parts: string[] = [];
  let current = '';
  for (const char of piece) {
    if (displayWidth(current + char) > room) {
      parts.push(current);
      current = '';
    }
    current += char;
  }
  return [...parts, current];
}
