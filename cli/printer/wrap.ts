/** Text in lines of a width, at blanks where there are any. A command stays in one piece, so that it can be pasted. */
import { printable } from './printable.ts';
import type { Terminal } from './terminal.ts';
import { displayWidth } from './width.ts';

/** Control characters are made visible; line breaks stay. Every line begins with `indent`. */
export function wrapText(text: string, columns: number, indent = ''): string {
  return wrap(text, columns, indent, (line, room) => piecesOf(line).flatMap((piece) => cut(piece, room)));
}

/**
 * Does what `wrapText` does, for petrel's own text. A command stays whole: a terminal breaks a long one by itself, and
 * that break is not copied. `typed`: what a command looks like when it is printed.
 */
export function wrapOwnText(text: string, columns: number, typed: (text: string) => string): string {
  return wrap(text, columns, '', (line) => ownPieces(line), typed);
}

/** The first piece has the indentation, so that the line is not broken before it. */
function ownPieces(line: string): readonly string[] {
  const indentation = /^\s*/.exec(line)?.[0] ?? '';
  const [first = '', ...others] = piecesOf(line.slice(indentation.length), command);
  return [indentation + first, ...others];
}

/**
 * Does what `wrapOwnText` does, for lines that are too long for a terminal. Coloured ones stay, and those with columns:
 * they were made to fit.
 */
export function wrapLongLines(text: string, { isTty, columns, typed }: Terminal): string {
  if (!isTty) return text;
  const isLong = (line: string) => !/\u001b|\S {2,}/.test(line) && displayWidth(typed(line)) > columns;
  return text
    .split('\n')
    .map((line) => (isLong(line) ? wrapOwnText(line, columns, typed) : line))
    .join('\n');
}

/** A command with its words, up to a mark that ends a phrase; blanks; a word. */
const command = /petrel [a-z](?:[^;,.)]|[;,.)](?!\s|$))*[;,.)]?|\s+|\S+/gu;

const piecesOf = (line: string, pieces = /\s+|\S+/gu): readonly string[] => line.match(pieces) ?? [];

function wrap(
  text: string,
  columns: number,
  indent: string,
  pieces: (line: string, room: number) => readonly string[],
  typed = (piece: string): string => piece,
): string {
  const room = Math.max(8, columns - displayWidth(indent));
  return printable(text)
    .replaceAll('\t', '    ')
    .split('\n')
    .flatMap((line) => linesOf(pieces(line, room), room, typed))
    .map((line) => (indent + line).trimEnd())
    .join('\n');
}

function linesOf(pieces: readonly string[], room: number, typed: (piece: string) => string): string[] {
  const lines: string[] = [];
  let current = '';
  let width = 0;
  for (const piece of pieces) {
    const pieceWidth = displayWidth(typed(piece));
    if (width > 0 && width + pieceWidth > room) {
      lines.push(current);
      [current, width] = ['', 0];
      if (piece.trim() === '') continue; // the line break stands for it
    }
    current += piece;
    width += pieceWidth;
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
