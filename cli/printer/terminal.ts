/** What the streams can show. */
import { styleText } from 'node:util';

export interface Terminal {
  readonly isTty: boolean;
  readonly columns: number;
  /** Lines of the screen. */
  readonly rows: number;
  readonly color: boolean;
  /** A text of petrel's own with each `petrel <command>` as it can be typed here: that is what is printed. */
  readonly typed: (text: string) => string;
}

export interface StreamLike {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
}

const asWritten = (text: string): string => text;

/** NO_COLOR and FORCE_COLOR as everybody has them; a CI log is no terminal even where it fakes one. */
export function terminalOf(stream: StreamLike, env: NodeJS.ProcessEnv, typed = asWritten): Terminal {
  const isTty = stream.isTTY === true && env['TERM'] !== 'dumb' && !isSet(env['CI']);
  const forced = isSet(env['FORCE_COLOR']) && env['FORCE_COLOR'] !== '0';
  const color = !isSet(env['NO_COLOR']) && (isTty || forced);
  return { isTty, columns: stream.columns || 100, rows: stream.rows || Number.MAX_SAFE_INTEGER, color, typed };
}

function isSet(value: string | undefined): boolean {
  return value !== undefined && value !== '';
}

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan';

/** Colour never carries a meaning of its own: the words say it too. */
export function styled(terminal: Terminal, style: Style, text: string): string {
  return terminal.color ? styleText(style, text, { validateStream: false }) : text;
}
