/** Filters over text. */
import { refuse } from '../errors.ts';
import { formatPercent } from '../format.ts';
import { iteratorOf, length, toArray, unpack } from '../iterate.ts';
import { escapeHtml } from '../markup.ts';
import { toJson } from '../json.ts';
import { center, replaceText } from '../methods/text-methods.ts';
import { str } from '../print.ts';
import { flagArgument, integerArgument, requiredText, textArgument } from '../signature.ts';
import { capitalize, codePoints, lengthOf, slicePoints, space, splitLines, strip } from '../python-strings.ts';
import { Dict, Markup, Tuple, Undefined, textOf, none } from '../values.ts';
import { type Filter, filter, textFilter } from './filter.ts';

const wordStart = new RegExp(`([-${space}({[<]+)`);

export const textFilters: Readonly<Record<string, Filter>> = {
  upper: textFilter('upper', [], (text) => text.toUpperCase()),
  lower: textFilter('lower', [], (text) => text.toLowerCase()),
  capitalize: textFilter('capitalize', [], capitalize),
  title: filter('title', [], (value) => str(value).split(wordStart).map(upperFirst).join('')),
  trim: textFilter('trim', ['chars?'], (text, [chars]) => strip(text, textArgument(chars), 'both')),
  center: textFilter('center', ['width?'], (text, [width]) => center(text, integerArgument(width, 80), ' ')),
  replace: filter('replace', ['old', 'new', 'count?'], (value, [old = none, by = none, count]) =>
    replaceText(str(value), str(old), str(by), integerArgument(count, -1)),
  ),
  string: filter('string', [], (value) => (value instanceof Markup ? value : str(value))),
  safe: filter('safe', [], (value) => new Markup(str(value))),
  escape: filter('escape', [], (value) => new Markup(escapeHtml(value))),
  e: filter('e', [], (value) => new Markup(escapeHtml(value))),
  forceescape: filter('forceescape', [], (value) => new Markup(escapeHtml(str(value)))),
  striptags: filter('striptags', [], (value) => stripTags(str(value))),
  indent: filter('indent', ['width?', 'first?', 'blank?'], (value, [width, first, blank]) => {
    if (value instanceof Undefined) return value.fail();
    const text = textOf(value) ?? refuse('indent: a string is required');
    const by = width === undefined ? '    ' : (textOf(width) ?? ' '.repeat(integerArgument(width, 4)));
    const shown = indent(text, by, flagArgument(first), flagArgument(blank));
    return value instanceof Markup ? new Markup(shown) : shown;
  }),
  truncate: filter(
    'truncate',
    ['length?', 'killwords?', 'end?', 'leeway?'],
    (value, [size, killWords, end, leeway]) => {
      const [limit, extra] = [integerArgument(size, 255), integerArgument(leeway, 5)];
      if (textOf(value) === undefined && length(value) <= limit + extra) return value;
      return truncate(requiredText(value), limit, flagArgument(killWords), textArgument(end) ?? '...', extra);
    },
  ),
  wordcount: filter('wordcount', [], (value) => BigInt(str(value).match(/[\p{L}\p{N}_\p{M}]+/gu)?.length ?? 0)),
  wordwrap: filter(
    'wordwrap',
    ['width?', 'break_long_words?', 'wrapstring?', 'break_on_hyphens?'],
    (value, [width, breakLong, wrap]) => {
      if (integerArgument(width, 79) <= 0) return refuse(`invalid width ${integerArgument(width, 79)} (must be > 0)`);
      const by = textArgument(wrap) ?? '\n';
      const wrapLine = (line: string): string =>
        wrapWords(line, integerArgument(width, 79), breakLong === undefined || flagArgument(breakLong)).join(by);
      return splitLines(requiredText(value), false).map(wrapLine).join(by);
    },
  ),
  format: (value, args, keywords) => {
    if (args.length > 0 && keywords.size > 0)
      return refuse("can't handle positional and keyword arguments at the same time");
    return formatPercent(str(value), keywords.size > 0 ? new Dict(keywords) : new Tuple(args));
  },
  urlencode: filter('urlencode', [], (value) => {
    if (textOf(value) !== undefined || iteratorOf(value) === undefined) return quoteUrl(str(value), '/');
    const pairs = value instanceof Dict ? value.entries() : toArray(value).map((pair) => unpack(pair, 2));
    return pairs
      .map(
        ([key = '', item = '']) =>
          `${quoteUrl(str(key), '').replaceAll('%20', '+')}=${quoteUrl(str(item), '').replaceAll('%20', '+')}`,
      )
      .join('&');
  }),
  xmlattr: filter('xmlattr', ['autospace?'], (value, [autospace]) => {
    if (!(value instanceof Dict)) return refuse('xmlattr: a mapping is required');
    if (value.keys().some((key) => /[\s/>=]/.test(str(key))))
      return refuse('xmlattr: invalid character in an attribute name');
    const kept = value.entries().filter(([, item]) => item !== none && !(item instanceof Undefined));
    const text = kept.map(([key, item]) => `${escapeHtml(key)}="${escapeHtml(item)}"`).join(' ');
    return text !== '' && (autospace === undefined || flagArgument(autospace)) ? ` ${text}` : text;
  }),
  tojson: filter(
    'tojson',
    ['ensure_ascii?', 'indent?', 'separators?', 'sort_keys?'],
    (value, [ensureAscii, width, separators, sortKeys]) => {
      const by =
        width === undefined || width === none
          ? undefined
          : (textOf(width) ?? ' '.repeat(Math.max(0, integerArgument(width, 0))));
      const given =
        separators === undefined || separators === none
          ? undefined
          : toArray(separators).map((item) => requiredText(item));
      if (given !== undefined && given.length !== 2) return refuse('separators must be a pair');
      const [itemSeparator = by === undefined ? ', ' : ',', keySeparator = ': '] = given ?? [];
      return toJson(value, {
        ensureAscii: flagArgument(ensureAscii),
        indent: by,
        itemSeparator,
        keySeparator,
        sortKeys: flagArgument(sortKeys),
      });
    },
  ),
};

function upperFirst(word: string): string {
  const [first = '', ...rest] = codePoints(word);
  return first.toUpperCase() + rest.join('').toLowerCase();
}

function indent(text: string, by: string, first: boolean, blank: boolean): string {
  const [head = '', ...rest] = splitLines(`${text}\n`, false);
  const lines = rest.map((line) => (line !== '' || blank ? by + line : line));
  return (first ? by : '') + [head, ...lines].join('\n');
}

function truncate(text: string, size: number, killWords: boolean, end: string, leeway: number): string {
  if (size < lengthOf(end)) return refuse(`expected length >= ${lengthOf(end)}, got ${size}`);
  if (lengthOf(text) <= size + leeway) return text;
  const cut = slicePoints(text, 0, size - lengthOf(end));
  if (killWords) return cut + end;
  const at = cut.lastIndexOf(' ');
  return (at < 0 ? cut : cut.slice(0, at)) + end;
}

/** Fills lines greedily, as textwrap does for plain words. */
function wrapWords(line: string, width: number, breakLong: boolean): string[] {
  const lines: string[] = [];
  let current = '';
  for (const chunk of line.split(/( +)/).filter((piece) => piece !== '')) {
    if (lengthOf(current + chunk) <= width) {
      if (current !== '' || lines.length === 0 || chunk.trim() !== '') current += chunk;
      continue;
    }
    if (current.trim() !== '') lines.push(current.trimEnd());
    current = chunk.trim() === '' ? '' : chunk;
    if (!breakLong || lengthOf(current) <= width) continue;
    const points = codePoints(current);
    let at = 0;
    for (; points.length - at > width; at += width) lines.push(points.slice(at, at + width).join(''));
    current = points.slice(at).join('');
  }
  if (current.trim() !== '') lines.push(current.trimEnd());
  return lines;
}

function stripTags(text: string): string {
  const bare = withoutEnclosed(withoutEnclosed(text, '<!--', '-->'), '<', '>');
  const plain = bare
    .split(new RegExp(`[${space}]+`))
    .filter((word) => word !== '')
    .join(' ');
  const named: Readonly<Record<string, string>> = {
    amp: '&',
    lt: '<',
    gt: '>',
    quot: '"',
    '#34': '"',
    '#39': "'",
    nbsp: '\u00a0',
  };
  return plain.replace(/&(amp|lt|gt|quot|#34|#39|nbsp);/g, (_, name: string) => named[name] ?? '');
}

/** A regular expression would search for the end again from each start. */
function withoutEnclosed(text: string, open: string, close: string): string {
  let kept = '';
  let at = 0;
  for (;;) {
    const from = text.indexOf(open, at);
    const to = from < 0 ? -1 : text.indexOf(close, from + open.length);
    if (to < 0) return kept + text.slice(at);
    kept += text.slice(at, from);
    at = to + close.length;
  }
}

function quoteUrl(text: string, keep: string): string {
  const quoted = encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return keep === '/' ? quoted.replaceAll('%2F', '/') : quoted;
}
