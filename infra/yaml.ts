/**
 * Reads YAML that a person wrote (JSON is YAML, too). What cannot be read, and what would be read as something else, is
 * refused with file and line: tags that mean nothing here, numbers that lose digits, anchors that multiply or contain
 * themselves, bytes that are not UTF-8.
 */
import { Lexer, LineCounter, isAlias, isNode, isScalar, parseDocument, visit } from 'yaml';
import type { Document, Node, ParsedNode } from 'yaml';
import { InvalidInputError } from '../core/errors.ts';

/** A place in a text, counted from 1. */
export interface Position {
  readonly line: number;
  readonly col: number;
}

export interface ParsedYaml {
  readonly value: unknown;
  readonly contents: ParsedNode | null;
  positionOf(offset: number): Position;
}

/** `recipe.yaml:3:7`. */
export function showPosition(file: string, { line, col }: Position): string {
  return `${file}:${line}:${col}`;
}

/** The line with a caret under the position. `masked`: the rest of the line from there is not shown. */
export function caretAt(text: string, { line, col }: Position, masked = false): string {
  const whole = (text.split(/\r?\n/)[line - 1] ?? '').slice(0, mostShown);
  const shown = masked ? `${whole.slice(0, col - 1)}***` : whole;
  return `  ${shown}\n  ${shown.slice(0, col - 1).replace(/[^\t]/g, ' ')}^`;
}

const mostShown = 300;
/** Levels of lists and mappings; the library's reader is recursive, and gives up at some thousands. */
const mostNested = 100;
/** Times that one alias may be repeated, those inside of others included. */
const mostAliases = 100;

/** Throws InvalidInputError with `file:line:col`. */
export function parseYaml(text: string, file: string): ParsedYaml {
  const counter = new LineCounter();
  const refuse = (offset: number, message: string, hint?: string): InvalidInputError => {
    const position = positionIn(text, offset);
    return new InvalidInputError(`${message}\n${caretAt(text, position)}`, {
      where: showPosition(file, position),
      ...(hint !== undefined && { hint }),
    });
  };
  refuseUnreadable(text, refuse);
  const document = parseDocument(text, { lineCounter: counter, prettyErrors: false, version: '1.2' });
  const [problem] = [...document.errors, ...document.warnings];
  if (problem?.code === 'MULTIPLE_DOCS')
    throw refuse(
      problem.pos[0],
      'not valid YAML: expected one document, found a second one',
      'leave out what follows ---',
    );
  if (problem !== undefined) throw refuse(problem.pos[0], `not valid YAML: ${problem.message}`);
  refuseMisread(document, refuse);
  return {
    value: valueOf(document, refuse),
    contents: document.contents,
    positionOf: (offset) => counter.linePos(offset),
  };
}

type Refuse = (offset: number, message: string, hint?: string) => InvalidInputError;

function positionIn(text: string, offset: number): Position {
  const before = text.slice(0, offset);
  return { line: before.split('\n').length, col: offset - before.lastIndexOf('\n') };
}

function refuseUnreadable(text: string, refuse: Refuse): void {
  const save = 'save the file as UTF-8';
  const zero = text.indexOf('\0');
  if (zero >= 0) throw refuse(zero, 'not valid YAML: expected UTF-8, found a zero byte, as in UTF-16', save);
  const broken = text.indexOf('\ufffd');
  if (broken >= 0) throw refuse(broken, 'not valid YAML: expected UTF-8, found other bytes', save);
  const deep = tooDeep(text);
  if (deep !== undefined)
    throw refuse(deep, `not valid YAML: lists and mappings are nested in more than ${mostNested} levels`);
}

/**
 * The place at which the nesting passes the limit. The library's parser must not see it: it runs out of stack, or of
 * memory.
 */
function tooDeep(text: string): number | undefined {
  const compact = new RegExp(`^[ \\t]*(?:[-?][ \\t]+){${mostNested}}`, 'm').exec(text);
  const indented = new RegExp(`^ {${10 * mostNested}}`, 'm').exec(text);
  const block = compact ?? indented;
  let [depth, at] = [0, 0];
  for (const token of new Lexer().lex(text)) {
    if (token === '[' || token === '{') depth += 1;
    else if (token === ']' || token === '}') depth -= 1;
    if (depth > mostNested) return at;
    // Tokens of one control character stand for no text.
    if (!/^[\u0002\u0018\u001f]$/.test(token)) at += token.length;
  }
  return block?.index;
}

/** The library reads these without an error, but as something else. */
function refuseMisread(document: Document.Parsed, refuse: Refuse): void {
  visit(document, {
    Scalar(_, { value, source, range }) {
      if (typeof value === 'number' && !Number.isFinite(value))
        throw refuse(range?.[0] ?? 0, `not valid YAML: expected a number with an end, found ${source}`);
      const isWhole = typeof value === 'number' && /^[-+]?\d+$/.test(source ?? '');
      if (isWhole && !Number.isSafeInteger(value))
        throw refuse(
          range?.[0] ?? 0,
          `not valid YAML: the number ${source} has too many digits`,
          'quote it for a text',
        );
    },
    Alias(_, alias, path) {
      if (path.includes(alias.resolve(document) as Node))
        throw refuse(alias.range?.[0] ?? 0, `not valid YAML: the anchor ${alias.source} contains itself`);
    },
    Pair(_, { key }) {
      if (isNode(key) && !isScalar(key) && !isAlias(key))
        throw refuse(key.range?.[0] ?? 0, 'not valid YAML: a key must be a text, found a list or a mapping');
    },
  });
}

/** Anchors may be repeated, but not multiply: a file of a few lines could fill the memory. */
function valueOf(document: Document.Parsed, refuse: Refuse): unknown {
  try {
    return document.toJS({ maxAliasCount: mostAliases }) as unknown;
  } catch (error) {
    if (!(error instanceof ReferenceError)) throw error;
    const unresolved = /Unresolved alias.*: (.+)$/.exec(error.message)?.[1];
    let at = 0;
    visit(document, {
      Alias(_, { source, range }) {
        if (unresolved === undefined || source === unresolved) at = range?.[0] ?? at;
        return unresolved === source ? visit.BREAK : undefined;
      },
    });
    const why =
      unresolved === undefined
        ? 'its aliases multiply to more values than a file needs'
        : `there is no anchor ${unresolved}`;
    throw refuse(at, `not valid YAML: ${why}`);
  }
}
