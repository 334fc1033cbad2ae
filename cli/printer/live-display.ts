/** Shows progress as it comes: a region that is redrawn on a terminal, one line per iteration elsewhere. */
import type { Printer } from './printer.ts';
import type { RunProgress } from '../../api/index.ts';
import { warningText } from '../../core/run-warnings.ts';
import { liveRegion, progressLine } from './progress.ts';
import { fit } from './width.ts';

const HEARTBEAT_MS = 30_000;

export interface LiveDisplay {
  /** Call it as often as there is news, and a few times a second on a terminal. */
  update(frame: RunProgress): void;
  /** A line above the region that stays. */
  note(text: string): void;
  /** Leaves the last state on the screen. */
  end(): void;
}

export function createLiveDisplay(printer: Printer, now: () => number): LiveDisplay {
  return printer.stderr.isTty ? createRegion(printer) : createLines(printer, now);
}

function createRegion(printer: Printer): LiveDisplay {
  let drawn = 0;
  let last: RunProgress | undefined;
  const draw = (above: string) => {
    if (above !== '') {
      printer.live(drawn, above);
      drawn = 0;
    }
    const lines = last === undefined ? [] : liveRegion(last, printer.stderr.columns - 1);
    drawn = printer.live(drawn, lines.map((line) => `${line}\n`).join(''));
  };
  return {
    update(frame) {
      last = frame;
      draw('');
    },
    note: (text) => draw(`${text}\n`),
    end() {
      const line = last === undefined ? '' : `${fit(progressLine(last), printer.stderr.columns - 1)}\n`;
      printer.live(drawn, line);
      drawn = 0;
      last = undefined;
    },
  };
}

function createLines(printer: Printer, now: () => number): LiveDisplay {
  let shown = '';
  const warned = new Set<string>();
  let shownAt = Number.NEGATIVE_INFINITY;
  return {
    update(frame) {
      for (const warning of frame.warnings ?? []) {
        const about = `${warning.code} ${warning.iterations[0]}`;
        if (!warned.has(about)) printer.notice(warningText(warning, frame.runId));
        warned.add(about);
      }
      const key = `${frame.iteration} ${frame.state} ${frame.accuracy ?? ''} ${frame.stuck ?? ''}`;
      if (key === shown && now() - shownAt < HEARTBEAT_MS) return;
      const doing = frame.stuck ?? (key === shown ? frame.activity : undefined);
      const again = doing === undefined ? '' : `  (${doing})`;
      printer.notice(progressLine(frame) + again);
      shown = key;
      shownAt = now();
    },
    note: (text) => printer.notice(text),
    end: () => undefined,
  };
}
