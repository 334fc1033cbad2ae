/** The one way from a command to the terminal: data to stdout, everything else to stderr. */
import { type ErrorJson, errorToJson } from '../../core/errors.ts';
import { styled, type Style, type Terminal, terminalOf, type StreamLike } from './terminal.ts';

export interface OutputStream extends StreamLike {
  write(text: string): unknown;
}

export interface PrinterOptions {
  readonly json: boolean;
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly env: NodeJS.ProcessEnv;
}

export interface Printer {
  readonly json: boolean;
  readonly stdout: Terminal;
  readonly stderr: Terminal;
  /** The command's answer: `value` itself with --json, else the text made from it. */
  data(value: unknown, text: () => string): void;
  /** One item of a stream: a JSON line with --json, else the text. */
  item(value: unknown, text: () => string): void;
  /** For people only. */
  notice(text: string): void;
  error(error: unknown): void;
  /** Text styled for stdout. */
  style(style: Style, text: string): string;
  /** Raw text to stderr: the live region. */
  live(text: string): void;
}

export function createPrinter({ json, stdout, stderr, env }: PrinterOptions): Printer {
  const out = terminalOf(stdout, env);
  const err = terminalOf(stderr, env);
  const line = (stream: OutputStream, text: string) => stream.write(text.endsWith('\n') ? text : `${text}\n`);
  return {
    json,
    stdout: out,
    stderr: err,
    data: (value, text) => line(stdout, json ? JSON.stringify(value, null, 2) : text()),
    item: (value, text) => line(stdout, json ? JSON.stringify(value) : text()),
    notice: (text) => line(stderr, text),
    error(error) {
      const shown = errorToJson(error);
      if (json) line(stdout, JSON.stringify({ error: shown }, null, 2));
      else line(stderr, errorText(shown, err) + debugText(error, env));
    },
    style: (style, text) => styled(out, style, text),
    live: (text) => stderr.write(text),
  };
}

/** What failed, where, and what to try. */
export function errorText(error: ErrorJson, terminal: Terminal): string {
  const lines = [`${styled(terminal, 'red', 'petrel:')} ${error.message}`];
  const isNews = (text: string | undefined): text is string => text !== undefined && !error.message.includes(text);
  if (isNews(error.where)) lines.push(`  at ${error.where}`);
  if (isNews(error.hint)) lines.push(`  hint: ${error.hint}`);
  return lines.join('\n');
}

function debugText(error: unknown, env: NodeJS.ProcessEnv): string {
  const wanted = (env['PETREL_DEBUG'] ?? '') !== '';
  return wanted && error instanceof Error && error.stack !== undefined ? `\n${error.stack}` : '';
}
