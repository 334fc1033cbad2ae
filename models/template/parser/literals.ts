/** Values of number and string tokens. */
import { TemplateError } from '../errors.ts';
import { type Value, none } from '../values.ts';

export function integerLiteral(text: string): bigint {
  return BigInt(text.replaceAll('_', '').toLowerCase());
}

export function floatLiteral(text: string): number {
  return Number(text.replaceAll('_', ''));
}

const simple: Readonly<Record<string, string>> = {
  '\n': '',
  '\\': '\\',
  "'": "'",
  '"': '"',
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
};

/** Python's escapes; an unknown escape stays as it is written. */
export function stringLiteral(quoted: string, line: number): string {
  return quoted
    .slice(1, -1)
    .replace(
      /\\(?:([0-7]{1,3})|x([\da-fA-F]{0,2})|u([\da-fA-F]{0,4})|U([\da-fA-F]{0,8})|([\s\S]))/g,
      (whole, octal, x, u, long, other) => {
        if (octal !== undefined) return String.fromCharCode(Number.parseInt(octal, 8));
        if (x !== undefined) return point(x, 2, line);
        if (u !== undefined) return point(u, 4, line);
        if (long !== undefined) return point(long, 8, line);
        return simple[other] ?? whole;
      },
    );
}

function point(hex: string, digits: number, line: number): string {
  const code = Number.parseInt(hex, 16);
  if (hex.length !== digits || code > 0x10ffff)
    throw new TemplateError(`truncated or wrong escape in a string: ${hex}`, line);
  return code < 0x10000 ? String.fromCharCode(code) : String.fromCodePoint(code);
}

export const constants: ReadonlyMap<string, Value> = new Map<string, Value>([
  ['true', true],
  ['True', true],
  ['false', false],
  ['False', false],
  ['none', none],
  ['None', none],
]);
