/** Shows something again and again: in place on a terminal, whenever it changes elsewhere. */
import { isStoreRefusal } from '../../api/index.ts';
import { counted } from '../../core/quantities.ts';
import type { Printer } from '../printer/printer.ts';
import type { Terminal } from '../printer/terminal.ts';
import { displayWidth } from '../printer/width.ts';
import { wrapLongLines } from '../printer/wrap.ts';

const everyMs = 500;

export interface Shown {
  readonly value: unknown;
  readonly text: string;
  /** True when nothing will change any more. */
  readonly ended: boolean;
}

/** Resolves when it has ended, or on Ctrl-C: then with `interrupted`. */
export async function keepShowing(
  look: (signal: AbortSignal) => Promise<Shown>,
  printer: Printer,
): Promise<'ended' | 'interrupted'> {
  const leave = new AbortController();
  const onInterrupt = () => leave.abort();
  process.once('SIGINT', onInterrupt);
  const inPlace = printer.stdout.isTty && printer.stderr.isTty && !printer.json;
  let drawn = 0;
  let last = '';
  try {
    while (!leave.signal.aborted) {
      const shown = await look(leave.signal);
      const key = JSON.stringify(shown.value, withoutNoise);
      if (inPlace) drawn = printer.live(drawn, `${onScreen(shown.text, printer.stderr)}\n`);
      else if (key !== last) printer.item(shown.value, () => `${shown.text}\n`);
      last = key;
      if (shown.ended) return 'ended';
      await pause(leave.signal);
    }
    return 'interrupted';
  } catch (error) {
    if (leave.signal.aborted && isStoreRefusal(error)) return 'interrupted';
    throw error;
  } finally {
    process.removeListener('SIGINT', onInterrupt);
  }
}

/** Cuts the text to the lines of the screen, because what has left it at the top cannot be erased. */
export function onScreen(text: string, terminal: Terminal): string {
  const { columns, rows, typed } = terminal;
  const lines = wrapLongLines(text, terminal).split('\n');
  const taken = lines.map((line) => Math.max(1, Math.ceil(displayWidth(typed(line)) / columns)));
  if (sum(taken) < rows) return lines.join('\n');
  let shown = lines.length;
  while (shown > 0 && sum(taken.slice(0, shown)) + 1 >= rows) shown -= 1;
  return [...lines.slice(0, shown), `… ${counted(lines.length - shown, 'more line')}`].join('\n');
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);

/** What changes all the time without being news. */
function withoutNoise(key: string, value: unknown): unknown {
  return key === 'loopDelayMs' || key === 'roundTripMs' || key === 'tokensPerSecond' || key === 'progress'
    ? undefined
    : value;
}

function pause(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, everyMs);
    signal.addEventListener('abort', done, { once: true });
  });
}
