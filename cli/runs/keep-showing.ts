/** Shows something again and again: in place on a terminal, whenever it changes elsewhere. */
import type { Printer } from '../printer/printer.ts';
import { fit } from '../printer/width.ts';

const everyMs = 500;

export interface Shown {
  readonly value: unknown;
  readonly text: string;
  /** Nothing will change any more. */
  readonly ended: boolean;
}

/** Resolves when it has ended, or on Ctrl-C. */
export async function keepShowing(look: () => Promise<Shown>, printer: Printer): Promise<void> {
  const leave = new AbortController();
  const onInterrupt = () => leave.abort();
  process.once('SIGINT', onInterrupt);
  const inPlace = printer.stdout.isTty && printer.stderr.isTty && !printer.json;
  let drawn = 0;
  let last = '';
  try {
    while (!leave.signal.aborted) {
      const shown = await look();
      const key = JSON.stringify(shown.value, withoutNoise);
      if (inPlace) drawn = redraw(shown.text, drawn, printer);
      else if (key !== last) printer.item(shown.value, () => `${shown.text}\n`);
      last = key;
      if (shown.ended) return;
      await pause(leave.signal);
    }
  } finally {
    process.removeListener('SIGINT', onInterrupt);
  }
}

function redraw(text: string, drawn: number, printer: Printer): number {
  const lines = text
    .split('\n')
    .map((line) => (line.includes('\u001b') ? line : fit(line, printer.stderr.columns - 1)));
  printer.live(drawn, `${lines.join('\n')}\n`);
  return lines.length;
}

/** What changes all the time without being news. */
function withoutNoise(key: string, value: unknown): unknown {
  return key === 'loopDelayMs' || key === 'progress' ? undefined : value;
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
