/**
 * The one way from a command to the terminal: data to stdout, everything else to stderr. Whatever is printed is cleaned
 * of control characters here.
 */
import { type ErrorJson, errorToJson } from '../../core/errors.ts';
import { printable, printableJson, printableStyled } from './printable.ts';
import { displayWidth } from './width.ts';
import { wrapLongLines } from './wrap.ts';
import { styled, type Style, type Terminal, terminalOf, type StreamLike } from './terminal.ts';

export interface OutputStream extends StreamLike {
  write(text: string): unknown;
}

export interface PrinterOptions {
  readonly json: boolean;
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly env: NodeJS.ProcessEnv;
  /** Puts commands as they can be typed here. Not used for JSON. */
  readonly typed?: (text: string) => string;
  /** What the command prints on stdout is not petrel's own text: a log, samples, a page of the docs. */
  readonly quotes?: boolean;
}

export interface Printer {
  readonly json: boolean;
  readonly stdout: Terminal;
  readonly stderr: Terminal;
  /** The command's answer: `value` itself with --json, else the text made from it. */
  data(value: unknown, text: () => string): void;
  /** One item of a stream: a JSON line with --json, else the text. */
  item(value: unknown, text: () => string): void;
  /** Prints a notice, for people only. */
  notice(text: string): void;
  error(error: unknown): void;
  /** Text styled for stdout. */
  style(style: Style, text: string): string;
  /**
   * The live region on stderr: erases the `rows` rows of the screen that were drawn last and writes `text`. Returns the
   * rows that it takes; a line that is too long takes several.
   */
  live(rows: number, text: string): number;
}

export function createPrinter({ json, stdout, stderr, env, typed, quotes = false }: PrinterOptions): Printer {
  const out = terminalOf(stdout, env, json || quotes ? undefined : typed);
  const err = terminalOf(stderr, env, json ? undefined : typed);
  const clean = (terminal: Terminal, text: string) =>
    terminal.typed(terminal.color ? printableStyled(text) : printable(text));
  const toOut = (text: string) => stdout.write(withLineBreak(clean(out, quotes ? text : wrapLongLines(text, out))));
  const toErr = (text: string) => stderr.write(withLineBreak(clean(err, wrapLongLines(text, err))));
  const jsonToOut = (value: unknown, indent?: number) =>
    stdout.write(`${printableJson(JSON.stringify(value, null, indent))}\n`);
  return {
    json,
    stdout: out,
    stderr: err,
    data: (value, text) => (json ? jsonToOut(value, 2) : toOut(text())),
    item: (value, text) => (json ? jsonToOut(value) : toOut(text())),
    notice: toErr,
    error(error) {
      const shown = errorToJson(error);
      if (json) jsonToOut({ error: shown }, 2);
      else toErr(errorText(shown, err) + debugText(error, env));
    },
    style: (style, text) => styled(out, style, text),
    live(rows, text) {
      const shown = clean(err, text);
      stderr.write(eraseLines(rows) + shown);
      return rowsOf(shown, err.columns);
    },
  };
}

/** Moves the cursor to the first of the last `rows` lines and clears from there. */
function eraseLines(rows: number): string {
  return rows === 0 ? '' : `\u001b[${rows}A\r\u001b[J`;
}

/** Rows on the screen of a text that ends with a line break, or is empty. */
const rowsOf = (text: string, columns: number): number =>
  text
    .split('\n')
    .slice(0, -1)
    .reduce((rows, line) => rows + Math.max(1, Math.ceil(displayWidth(line) / columns)), 0);

function withLineBreak(text: string): string {
  return text.endsWith('\n') ? text : `${text}\n`;
}

/** What failed, where, and what to try. */
function errorText(error: ErrorJson, terminal: Terminal): string {
  const lines = [`petrel: ${error.message}`];
  const isNews = (text: string | undefined): text is string => text !== undefined && !error.message.includes(text);
  if (isNews(error.where)) lines.push(`  at ${error.where}`);
  if (isNews(error.hint)) lines.push(`  hint: ${error.hint}`);
  return wrapLongLines(lines.join('\n'), terminal).replace('petrel:', (name) => styled(terminal, 'red', name));
}

function debugText(error: unknown, env: NodeJS.ProcessEnv): string {
  const wanted = (env['PETREL_DEBUG'] ?? '') !== '';
  return wanted && error instanceof Error && error.stack !== undefined ? `\n${error.stack}` : '';
}
