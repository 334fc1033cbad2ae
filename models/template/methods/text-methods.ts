/** Methods of str. Positions and widths count code points. */
import { refuse } from '../errors.ts';
import { type Access, formatBraces } from '../format.ts';
import { toArray } from '../iterate.ts';
import { escapeHtml } from '../markup.ts';
import { type Bound, flagArgument, integerArgument, native, requiredText, textArgument } from '../signature.ts';
import {
  capitalize,
  codePoints,
  isSpace,
  lengthOf,
  pointIndex,
  slicePoints,
  splitLines,
  splitSpace,
  splitSpaceRight,
  strip,
  titleCase,
} from '../python-strings.ts';
import { Dict, Markup, Native, Tuple, Undefined, type Value, textOf, typeName, none } from '../values.ts';

interface Method {
  readonly parameters: readonly string[];
  readonly body: (text: string, bound: Bound) => Value;
}

/** The bound method, or undefined. The result of text that is marked as safe is marked, too. */
export function textMethod(text: string, name: string, marked: boolean, access: Access): Native | undefined {
  if (name === 'format') {
    return new Native('format', (args, keywords) =>
      mark(formatBraces(text, { args: marked ? args.map(escaped) : args, keywords }, access), marked),
    );
  }
  if (name === 'format_map') {
    return native('format_map', ['mapping'], ([mapping = none]) => {
      if (!(mapping instanceof Dict)) return refuse('format_map() argument must be a mapping');
      const keywords = new Map(mapping.entries().map(([key, value]) => [textOf(key) ?? '', value]));
      return mark(formatBraces(text, { args: [], keywords }, access), marked);
    });
  }
  if (!Object.hasOwn(methods, name)) return undefined;
  const method = methods[name] as Method;
  const safe = marked && (name === 'replace' || name === 'join');
  return native(name, method.parameters, (bound) => {
    const given = safe
      ? bound.map((value) => (value === undefined || textOf(value) === undefined ? value : escaped(value)))
      : bound;
    return mark(method.body(text, given), marked);
  });
}

function escaped(value: Value): Value {
  return textOf(value) === undefined ? value : escapeHtml(value);
}

function mark(value: Value, marked: boolean): Value {
  if (!marked) return value;
  if (typeof value === 'string') return new Markup(value);
  if (Array.isArray(value)) return value.map((item) => mark(item, true));
  return value instanceof Tuple ? new Tuple(value.items.map((item) => mark(item, true))) : value;
}

const range = ['start?', 'end?'];
const caseless = /^[^\p{L}\p{Lu}\p{Ll}\p{Lt}]*$/u;

const methods: Readonly<Record<string, Method>> = {
  upper: { parameters: [], body: (text) => text.toUpperCase() },
  lower: { parameters: [], body: (text) => text.toLowerCase() },
  casefold: { parameters: [], body: (text) => text.toLowerCase().replaceAll('ß', 'ss') },
  title: { parameters: [], body: titleCase },
  capitalize: { parameters: [], body: capitalize },
  swapcase: {
    parameters: [],
    body: (text) =>
      codePoints(text)
        .map((point) => (point === point.toUpperCase() ? point.toLowerCase() : point.toUpperCase()))
        .join(''),
  },
  strip: { parameters: ['chars?'], body: (text, [chars]) => strip(text, textArgument(chars), 'both') },
  lstrip: { parameters: ['chars?'], body: (text, [chars]) => strip(text, textArgument(chars), 'left') },
  rstrip: { parameters: ['chars?'], body: (text, [chars]) => strip(text, textArgument(chars), 'right') },
  startswith: {
    parameters: ['prefix', ...range],
    body: (text, bound) => affix(text, bound, (part, affixText) => part.startsWith(affixText)),
  },
  endswith: {
    parameters: ['suffix', ...range],
    body: (text, bound) => affix(text, bound, (part, affixText) => part.endsWith(affixText)),
  },
  removeprefix: {
    parameters: ['prefix'],
    body: (text, [prefix]) => (text.startsWith(requiredText(prefix)) ? text.slice(requiredText(prefix).length) : text),
  },
  removesuffix: {
    parameters: ['suffix'],
    body: (text, [suffix]) =>
      requiredText(suffix) !== '' && text.endsWith(requiredText(suffix))
        ? text.slice(0, -requiredText(suffix).length)
        : text,
  },
  split: {
    parameters: ['sep?', 'maxsplit?'],
    body: (text, [separator, limit]) => split(text, textArgument(separator), integerArgument(limit, -1)),
  },
  rsplit: {
    parameters: ['sep?', 'maxsplit?'],
    body: (text, [separator, limit]) => rsplit(text, textArgument(separator), integerArgument(limit, -1)),
  },
  splitlines: { parameters: ['keepends?'], body: (text, [keepEnds]) => splitLines(text, flagArgument(keepEnds)) },
  partition: {
    parameters: ['sep'],
    body: (text, [separator]) =>
      partition(text, requiredText(separator), text.indexOf(requiredText(separator)), 'left'),
  },
  rpartition: {
    parameters: ['sep'],
    body: (text, [separator]) =>
      partition(text, requiredText(separator), text.lastIndexOf(requiredText(separator)), 'right'),
  },
  replace: {
    parameters: ['old', 'new', 'count?'],
    body: (text, [old, by, count]) =>
      replaceText(text, requiredText(old), requiredText(by), integerArgument(count, -1)),
  },
  join: {
    parameters: ['iterable'],
    body: (text, [iterable = none]) =>
      toArray(iterable)
        .map((item, i) => textOf(item) ?? refuse(`sequence item ${i}: expected str instance, ${typeName(item)} found`))
        .join(text),
  },
  find: { parameters: ['sub', ...range], body: (text, bound) => BigInt(find(text, bound, false)) },
  rfind: { parameters: ['sub', ...range], body: (text, bound) => BigInt(find(text, bound, true)) },
  index: { parameters: ['sub', ...range], body: (text, bound) => found(find(text, bound, false)) },
  rindex: { parameters: ['sub', ...range], body: (text, bound) => found(find(text, bound, true)) },
  count: {
    parameters: ['sub', ...range],
    body: (text, [sub, ...rest]) => BigInt(count(part(text, rest).text, requiredText(sub))),
  },
  zfill: { parameters: ['width'], body: (text, [width]) => zeroFill(text, integerArgument(width, 0)) },
  center: {
    parameters: ['width', 'fillchar?'],
    body: (text, [width, fill]) => center(text, integerArgument(width, 0), textArgument(fill) ?? ' '),
  },
  ljust: { parameters: ['width', 'fillchar?'], body: (text, [width, fill]) => text + padding(text, width, fill) },
  rjust: { parameters: ['width', 'fillchar?'], body: (text, [width, fill]) => padding(text, width, fill) + text },
  expandtabs: { parameters: ['tabsize?'], body: (text, [size]) => expandTabs(text, integerArgument(size, 8)) },
  isdigit: {
    parameters: [],
    body: (text) => /^[\p{Nd}\u00b2\u00b3\u00b9\u2070-\u2079\u2080-\u2089\u2460-\u2468]+$/u.test(text),
  },
  isdecimal: { parameters: [], body: (text) => /^\p{Nd}+$/u.test(text) },
  isnumeric: { parameters: [], body: (text) => /^\p{N}+$/u.test(text) },
  isalpha: { parameters: [], body: (text) => /^\p{L}+$/u.test(text) },
  isalnum: { parameters: [], body: (text) => /^[\p{L}\p{N}]+$/u.test(text) },
  isascii: { parameters: [], body: (text) => /^[\x00-\x7f]*$/.test(text) },
  isspace: { parameters: [], body: isSpace },
  isupper: { parameters: [], body: isUpper },
  islower: { parameters: [], body: isLower },
  istitle: { parameters: [], body: (text) => !caseless.test(text) && titleCase(text) === text },
  isidentifier: { parameters: [], body: (text) => /^[\p{ID_Start}_][\p{ID_Continue}]*$/u.test(text) },
  isprintable: { parameters: [], body: (text) => !/[\p{C}\p{Z}]/u.test(text.replaceAll(' ', '')) },
};

export function isUpper(text: string): boolean {
  return text === text.toUpperCase() && text !== text.toLowerCase();
}

export function isLower(text: string): boolean {
  return text === text.toLowerCase() && text !== text.toUpperCase();
}

export function center(text: string, width: number, fill: string): string {
  const room = width - lengthOf(text);
  if (room <= 0) return text;
  const left = Math.floor(room / 2) + (room & width & 1);
  return fill.repeat(left) + text + fill.repeat(room - left);
}

/** str.replace; `count` < 0 means all. */
export function replaceText(text: string, old: string, by: string, count: number): string {
  if (count < 0 && old !== '') return text.replaceAll(old, () => by);
  if (old === '') {
    const points = codePoints(text);
    const limit = count < 0 ? points.length + 1 : count;
    return points.map((point, i) => (i < limit ? by + point : point)).join('') + (limit > points.length ? by : '');
  }
  const pieces = split(text, old, count) as string[];
  return pieces.join(by);
}

function split(text: string, separator: string | undefined, limit: number): string[] {
  if (separator === undefined) return splitSpace(text, limit);
  if (separator === '') return refuse('empty separator');
  const pieces = text.split(separator);
  return limit < 0 || pieces.length <= limit + 1
    ? pieces
    : [...pieces.slice(0, limit), pieces.slice(limit).join(separator)];
}

function rsplit(text: string, separator: string | undefined, limit: number): string[] {
  if (separator === undefined) return splitSpaceRight(text, limit);
  if (separator === '') return refuse('empty separator');
  const pieces: string[] = [];
  let end = text.length;
  while (limit < 0 || pieces.length < limit) {
    const at = end < separator.length ? -1 : text.lastIndexOf(separator, end - separator.length);
    if (at < 0) break;
    pieces.push(text.slice(at + separator.length, end));
    end = at;
  }
  return [text.slice(0, end), ...pieces.reverse()];
}

function partition(text: string, separator: string, at: number, side: 'left' | 'right'): Tuple {
  if (separator === '') return refuse('empty separator');
  if (at < 0) return new Tuple(side === 'left' ? [text, '', ''] : ['', '', text]);
  return new Tuple([text.slice(0, at), separator, text.slice(at + separator.length)]);
}

/** text[start:end] with Python's bounds, and the position where it starts. */
function part(text: string, [start, end]: Bound): { text: string; from: number } {
  if ((start ?? none) === none && (end ?? none) === none) return { text, from: 0 };
  const size = lengthOf(text);
  const clamp = (value: number): number => Math.min(Math.max(value < 0 ? value + size : value, 0), size);
  const from = clamp(integerArgument(start, 0));
  return { text: slicePoints(text, from, Math.max(from, clamp(integerArgument(end, size)))), from };
}

function affix(text: string, [wanted = none, ...rest]: Bound, test: (part: string, affix: string) => boolean): boolean {
  const { text: piece } = part(text, rest);
  const candidates = wanted instanceof Tuple ? wanted.items : [wanted];
  return candidates.some((candidate) => {
    if (candidate instanceof Undefined) return candidate.fail();
    return test(
      piece,
      textOf(candidate) ?? refuse(`first arg must be str or a tuple of str, not ${typeName(candidate)}`),
    );
  });
}

function find(text: string, [sub, ...rest]: Bound, fromRight: boolean): number {
  const piece = part(text, rest);
  const wanted = requiredText(sub);
  const at = pointIndex(piece.text, fromRight ? piece.text.lastIndexOf(wanted) : piece.text.indexOf(wanted));
  return at < 0 ? -1 : at + piece.from;
}

function found(index: number): bigint {
  return index < 0 ? refuse('substring not found') : BigInt(index);
}

function count(text: string, sub: string): number {
  return sub === '' ? lengthOf(text) + 1 : text.split(sub).length - 1;
}

function zeroFill(text: string, width: number): string {
  const sign = /^[+-]/.test(text) ? text.slice(0, 1) : '';
  return sign + '0'.repeat(Math.max(0, width - lengthOf(text))) + text.slice(sign.length);
}

function padding(text: string, width: Value | undefined, fill: Value | undefined): string {
  return (textArgument(fill) ?? ' ').repeat(Math.max(0, integerArgument(width, 0) - lengthOf(text)));
}

function expandTabs(text: string, size: number): string {
  let column = 0;
  return codePoints(text)
    .map((point) => {
      if (point === '\t') {
        const spaces = size <= 0 ? 0 : size - (column % size);
        column += spaces;
        return ' '.repeat(spaces);
      }
      column = point === '\n' || point === '\r' ? 0 : column + 1;
      return point;
    })
    .join('');
}
