/**
 * Numbers that a sampler gives for each token beside its log-probs, such as the experts that it was routed to. They go
 * with the token from the sampler to the update.
 */
import { at } from './at.ts';

export interface TokenColumn {
  /** [tokens][width] */
  readonly data: Float32Array | Int32Array;
  /** Numbers of one token. */
  readonly width: number;
}

/** Columns by their names. */
export type TokenColumns = Readonly<Record<string, TokenColumn>>;

/** The column of some tokens; those of an unknown token are NaN, or −1. */
function columnOf(like: TokenColumn, tokens: number): TokenColumn {
  const length = tokens * like.width;
  const isInteger = like.data instanceof Int32Array;
  const data = isInteger ? new Int32Array(length).fill(-1) : new Float32Array(length).fill(Number.NaN);
  return { data, width: like.width };
}

/** The columns of tokens [start, end). */
export const columnsOfTokens = (columns: TokenColumns, start: number, end: number): TokenColumns =>
  mapped(columns, ({ data, width }) => ({ data: data.subarray(start * width, end * width), width }));

/** The columns at these tokens, in their order. */
export const columnsAt = (columns: TokenColumns, tokens: Int32Array): TokenColumns =>
  mapped(columns, (column) => {
    const found = columnOf(column, tokens.length);
    tokens.forEach((t, i) => copy(column, t, found, i));
    return found;
  });

/** Columns of parts of these lengths, side by side. A part may lack some of them. */
export function joinedTokenColumns(
  parts: readonly { readonly columns: TokenColumns; readonly tokens: number }[],
): TokenColumns {
  const total = parts.reduce((sum, { tokens }) => sum + tokens, 0);
  const joined: Record<string, TokenColumn> = {};
  for (const name of [...new Set(parts.flatMap(({ columns }) => Object.keys(columns)))].sort()) {
    const like = at(
      parts.flatMap(({ columns }) => columns[name] ?? []),
      0,
    );
    const whole = columnOf(like, total);
    let first = 0;
    for (const { columns, tokens } of parts) {
      const own = columns[name];
      if (own !== undefined) whole.data.set(own.data, first * like.width);
      first += tokens;
    }
    joined[name] = whole;
  }
  return joined;
}

function copy(from: TokenColumn, t: number, to: TokenColumn, i: number): void {
  for (let w = 0; w < from.width; w++) to.data[i * to.width + w] = at(from.data, t * from.width + w);
}

const mapped = (columns: TokenColumns, map: (column: TokenColumn) => TokenColumn): TokenColumns =>
  Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, map(column)]));
