import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { InvalidInputError } from '../../core/errors.ts';
import { createLiveDisplay } from './live-display.ts';
import { createPrinter } from './printer.ts';
import type { PrinterOptions } from './printer.ts';
import { timeLeft } from '../../api/index.ts';
import type { RunProgress } from '../../api/index.ts';
import { liveRegion, progressBar, progressLine } from './progress.ts';
import { counted, showBytes, showCount, showDuration, showMoment, showNumber } from '../../core/quantities.ts';
import { renderFields, renderTable } from './table.ts';
import { printable } from './printable.ts';
import { displayWidth, fit } from './width.ts';

function capture(
  options: Partial<Pick<PrinterOptions, 'json' | 'env' | 'typed' | 'quotes'>> & { readonly isTTY?: boolean } = {},
) {
  const texts = { out: '', err: '' };
  const stream = (name: 'out' | 'err') => ({
    isTTY: options.isTTY ?? false,
    columns: 80,
    write: (text: string) => void (texts[name] += text),
  });
  const { isTTY: _, ...given } = options;
  const printer = createPrinter({ json: false, env: {}, stdout: stream('out'), stderr: stream('err'), ...given });
  return { printer, texts };
}

const frame: RunProgress = {
  runId: 'toy-20260101-000000-abcd',
  state: 'running',
  iteration: 12,
  iterations: 60,
  reward: 0.4123,
  accuracy: 0.5,
  tokensPerSecond: 8123,
  elapsedS: 30,
  remainingS: 72,
};

describe('the printer', () => {
  it('puts data on stdout and notices on stderr', () => {
    const { printer, texts } = capture();
    printer.data({ a: 1 }, () => 'a is 1');
    printer.notice('done');
    expect(texts).toEqual({ out: 'a is 1\n', err: 'done\n' });
  });

  it('prints the bare value with --json, and a stream as JSON lines', () => {
    const { printer, texts } = capture({ json: true });
    printer.data([{ a: 1 }], () => 'x');
    expect(JSON.parse(texts.out)).toEqual([{ a: 1 }]);
    texts.out = '';
    printer.item({ a: 1 }, () => 'x');
    expect(texts.out).toBe('{"a":1}\n');
  });

  it('prints errors as {"error": …} on stdout with --json, else as text on stderr', () => {
    const error = new InvalidInputError('no', { hint: 'yes', where: 'r.yaml:1:1' });
    const asJson = capture({ json: true });
    asJson.printer.error(error);
    expect(JSON.parse(asJson.texts.out)).toEqual({
      error: { code: 'InvalidInput', message: 'no', hint: 'yes', where: 'r.yaml:1:1' },
    });
    const asText = capture();
    asText.printer.error(error);
    expect(asText.texts.err).toBe('petrel: no\n  at r.yaml:1:1\n  hint: yes\n');
  });

  it('shows control characters of a message, a table or a live region instead of sending them to the terminal', () => {
    const hostile = '\u001b[2J\u001b]0;title\u0007\u009b31m\u202eabc';
    for (const isTTY of [true, false]) {
      const { printer, texts } = capture({ isTTY });
      printer.error(new InvalidInputError(hostile, { hint: hostile, where: hostile }));
      printer.notice(hostile);
      printer.data({}, () => renderTable([hostile], [{ head: 'reason', value: (row) => row }]));
      printer.item({}, () => renderFields([['reason', hostile]]));
      printer.live(0, hostile);
      const own = /\u001b\[(1|2|22|31|32|33|36|39)m/g;
      expect((texts.out + texts.err).replace(own, '')).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
    }
  });

  it('escapes in JSON what a terminal would obey, and the value stays the same', () => {
    const value = { reason: '\u001b[2J\u009b31m\u007f\u202e\tend\n' };
    const { printer, texts } = capture({ json: true });
    printer.data(value, () => '');
    expect(texts.out).not.toMatch(/[\u007f-\u009f\u202e\u001b]/);
    expect(JSON.parse(texts.out)).toEqual(value);
  });

  it('colours on a terminal only, and not with NO_COLOR or in CI', () => {
    expect(capture({ isTTY: true }).printer.style('red', 'x')).toContain('\u001b[');
    for (const options of [
      {},
      { isTTY: true, env: { NO_COLOR: '1' } },
      { isTTY: true, env: { CI: 'true' } },
      { isTTY: true, env: { TERM: 'dumb' } },
    ]) {
      expect(capture(options).printer.style('red', 'x')).toBe('x');
    }
    expect(capture({ env: { FORCE_COLOR: '1' } }).printer.style('red', 'x')).toContain('\u001b[');
  });
});

describe('on a terminal', () => {
  const typed = (text: string) => text.replaceAll('petrel ', 'node cli/bin.mjs ');
  const long = `${'it ends where it is, '.repeat(5)}and petrel resume toy continues it`;

  it('long lines are wrapped, in a pipe and in JSON they are not', () => {
    for (const say of ['notice', 'data', 'error'] as const) {
      const text = ({ out, err }: { readonly out: string; readonly err: string }) => out + err;
      const tell = ({ printer, texts }: ReturnType<typeof capture>) => {
        if (say === 'data') printer.data({ long }, () => long);
        else if (say === 'notice') printer.notice(long);
        else printer.error(new InvalidInputError('no', { hint: long }));
        return text(texts).trimEnd().split('\n');
      };
      const lines = tell(capture({ isTTY: true, typed }));
      expect(lines.length).toBeGreaterThan(1);
      expect(lines.filter((line) => displayWidth(line) > 80)).toEqual([]);
      expect(lines.join(' ')).toContain('node cli/bin.mjs resume toy continues it');
      expect(tell(capture({ typed })).join('\n')).toContain(typed(long));
    }
    const json = capture({ json: true, isTTY: true, typed });
    json.printer.data({ long }, () => '');
    expect(JSON.parse(json.texts.out)).toEqual({ long });
  });

  it('a text that is quoted is printed as it is', () => {
    const { printer, texts } = capture({ isTTY: true, typed, quotes: true });
    printer.data({}, () => long);
    expect(texts.out).toBe(`${long}\n`);
  });

  it('the live region counts the rows of the screen that it takes', () => {
    const { printer } = capture({ isTTY: true, typed });
    expect(printer.live(0, '')).toBe(0);
    expect(printer.live(0, 'a\n\nb\n')).toBe(3);
    expect(printer.live(0, `${'x'.repeat(80)}\n`)).toBe(1);
    expect(printer.live(0, `petrel resume ${'x'.repeat(60)}\n`)).toBe(2);
  });
});

describe('tables', () => {
  const columns = [
    { head: 'name', value: (row: readonly [string, number | undefined]) => row[0], shrink: true },
    { head: 'n', value: (row: readonly [string, number | undefined]) => row[1] },
  ];

  it('are aligned without borders, heads upper case, numbers on the right, no trailing blanks', () => {
    expect(
      renderTable(
        [
          ['a', 5],
          ['long', 100],
          ['', undefined],
        ],
        columns,
      ),
    ).toBe('NAME    N\na       5\nlong  100\n-       -');
  });

  it('shrink one column to the width of the terminal', () => {
    const text = renderTable([['x'.repeat(50), 1]], columns, 20);
    expect(Math.max(...text.split('\n').map(displayWidth))).toBe(20);
    expect(text).toContain('…');
  });

  it('leave out what is least wanted when shrinking is not enough, and wrap only when nothing is left to give up', () => {
    const wide = [
      { head: 'name', value: () => 'quickstart-20260102-030405-7af1' },
      { head: 'next', value: () => '2026-11-21 03:00:00Z', spare: 2 },
      { head: 'took', value: () => '3 m 05 s', spare: 1 },
      { head: 'why', value: () => 'x'.repeat(60), shrink: true },
    ];
    const heads = (width: number) => renderTable([0], wide, width).split('\n')[0]?.split(/ +/);
    for (const width of [41, 60, 80, 100, 200])
      expect(Math.max(...renderTable([0], wide, width).split('\n').map(displayWidth))).toBeLessThanOrEqual(width);
    expect([200, 80, 70, 60, 20].map(heads)).toEqual([
      ['NAME', 'NEXT', 'TOOK', 'WHY'],
      ['NAME', 'NEXT', 'TOOK', 'WHY'],
      ['NAME', 'NEXT', 'WHY'],
      ['NAME', 'WHY'],
      ['NAME', 'WHY'],
    ]);
  });

  it('of fields leave out what is undefined and indent further lines', () => {
    expect(
      renderFields([
        ['a', 'x\ny'],
        ['bcd', undefined],
        ['bc', 1],
      ]),
    ).toBe('a    x\n     y\nbc   1');
  });

  it('of fields wrap long values below themselves on a terminal', () => {
    const { printer } = capture({ isTTY: true });
    const text = renderFields([['why', 'word '.repeat(30)]], printer.stdout, '  ');
    const lines = text.split('\n');
    expect(lines[1]).toMatch(/^ {7}word/);
    expect(lines.filter((line) => displayWidth(line) > 80)).toEqual([]);
    expect(renderFields([['why', 'word '.repeat(30)]], capture().printer.stdout)).not.toContain('\n');
  });
});

describe('widths', () => {
  it('count wide characters twice and escape codes not at all', () => {
    expect([displayWidth('漢字'), displayWidth('\u001b[31mab\u001b[39m'), displayWidth('e\u0301')]).toEqual([4, 2, 1]);
  });

  it('never exceed what was allowed', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.integer({ min: 0, max: 20 }), (text, columns) => {
        expect(displayWidth(fit(text, columns))).toBeLessThanOrEqual(columns);
      }),
    );
  });

  it('make control characters of a model’s text visible', () => {
    expect(printable('a\u001b[2Jb\rc\u202e\n')).toBe('a␛[2Jb␍c�\n');
  });
});

describe('quantities', () => {
  it('read well', () => {
    expect([0.85, 12, 185, 7620, 273600].map(showDuration)).toEqual([
      '850 ms',
      '12 s',
      '3 m 05 s',
      '2 h 07 m',
      '3 d 04 h',
    ]);
    expect([512, 1677722, 12e9].map(showBytes)).toEqual(['512 B', '1.6 MiB', '11 GiB']);
    expect([950, 999.7, 8123, 12345, 999_960, 3.4e6].map(showCount)).toEqual([
      '950',
      '1.0k',
      '8.1k',
      '12k',
      '1.0M',
      '3.4M',
    ]);
    expect([0, 0.41234, 1.2e-6, 153.24, 12, NaN].map(showNumber)).toEqual([
      '0',
      '0.4123',
      '1.2e-6',
      '153.2',
      '12',
      'NaN',
    ]);
    expect(showMoment(new Date(0), new Date(185_000))).toBe('3 m ago');
    expect(showMoment(new Date(0), new Date(5), 'iso')).toBe('1970-01-01T00:00:00.000Z');
  });

  it('count one thing as one', () => {
    expect([counted(1, 'iteration'), counted(0, 'iteration'), counted(2, 'batch', 'batches')]).toEqual([
      '1 iteration',
      '0 iterations',
      '2 batches',
    ]);
  });

  it('roll over at 60 instead of showing 60', () => {
    expect([59.7, 3599.8, 86_399].map(showDuration)).toEqual(['1 m 00 s', '1 h 00 m', '1 d 00 h']);
  });
});

describe('progress', () => {
  it('is one line that says it all', () => {
    expect(progressLine(frame)).toBe('iteration 12/60  reward 0.412  accuracy 0.500  8.1k tokens/s  1 m 12 s left');
  });

  it('leaves out what is not known, and names a state that is not running', () => {
    expect(progressLine({ runId: 'x', state: 'queued', iteration: 0, iterations: 60, elapsedS: 0 })).toBe(
      'iteration 0/60  queued',
    );
  });

  it('estimates the time left from the median of the last iterations', () => {
    expect(timeLeft([], 5)).toBeUndefined();
    expect(timeLeft([100, 1, 1, 2, 1, 1, 1, 1, 1, 30], 4)).toBe(4);
  });

  it('says nothing of time when no iteration is to come', () => {
    expect(timeLeft([3, 3], 0)).toBeUndefined();
    const { remainingS: _none, ...last } = { ...frame, iteration: 60 };
    expect(progressLine(last)).not.toContain('left');
    expect(liveRegion(last, 79).join('\n')).toContain('last validation and checkpoint');
  });

  it.each([60, 79, 119])(
    'fits a terminal of %i columns with the time left, the curve and what Ctrl-C does',
    (columns) => {
      const lines = liveRegion({ ...frame, rewards: [0.1, 0.2, 0.4], activity: 'rollout 37 %' }, columns);
      expect(lines.every((line) => displayWidth(line) <= columns)).toBe(true);
      expect(lines[0]).toMatch(/iteration 12\/60 {2}1 m 12 s left$/);
      expect(lines[1]).toContain('reward 0.412 ▁▃█');
      expect(lines.at(-1)).toBe('rollout 37 % · Ctrl-C leaves the run going');
      expect(progressBar(0.5, 4)).toBe('[##--]');
      expect(progressBar(7, 2)).toBe('[##]');
    },
  );

  it('shows who works and for how much where other machines work, and nothing of it where only this one does', () => {
    const fleet = { workers: 6, machines: 4, usd: 0.00512 };
    expect(progressLine({ ...frame, fleet })).toContain('8.1k tokens/s  6 workers on 4 machines · $0.0051  1 m 12 s');
    expect(liveRegion({ ...frame, fleet }, 60)).toContain('6 workers on 4 machines · $0.0051');
    expect(progressLine({ ...frame, fleet: { workers: 3, machines: 2 } })).toContain('3 workers on 2 machines  1 m');
    expect(progressLine({ ...frame, fleet: { workers: 2, machines: 1 } })).toBe(progressLine(frame));
    expect(liveRegion({ ...frame, fleet: { workers: 2, machines: 1 } }, 60)).toEqual(liveRegion(frame, 60));
  });

  it('says how to go on when it is paused, or when the stack is down', () => {
    const text = (part: Partial<RunProgress>) => liveRegion({ ...frame, ...part }, 79).join('\n');
    expect(text({ state: 'paused' })).toContain(`petrel resume ${frame.runId}`);
    expect(text({ stuck: 'the local stack is down; petrel up brings it up, and the run continues' })).toContain(
      'petrel up',
    );
  });

  it('shows warnings below, and off a terminal each once', () => {
    const warning = (last: number) => ({
      code: 'ResponsesCut' as const,
      seen: '94 % of the responses were cut at data.max_response_length',
      iterations: [9, last] as const,
      advice: 'Read some responses: petrel samples RUN.',
    });
    const lines = liveRegion({ ...frame, warnings: [warning(12)] }, 60);
    const long = 'a-run-with-a-long-name-20260101-000000-abcd'.repeat(2);
    expect(liveRegion({ ...frame, runId: long, warnings: [warning(12)] }, 60).at(-1)).toContain(long);
    expect(lines.slice(3).join(' ')).toMatch(/warning: 94 % .* in iterations 9 to 12 what to do: petrel status toy-/);
    expect(lines.every((line) => displayWidth(line) <= 60)).toBe(true);
    const { printer, texts } = capture();
    const display = createLiveDisplay(printer, () => 0);
    for (const last of [12, 13, 14]) display.update({ ...frame, iteration: last, warnings: [warning(last)] });
    expect(texts.err.match(/warning:/g)).toHaveLength(1);
  });

  it('off a terminal is one line per iteration, and a sign of life each 30 s', () => {
    const { printer, texts } = capture();
    let now = 0;
    const display = createLiveDisplay(printer, () => now);
    display.update(frame);
    display.update({ ...frame, activity: 'rollout 3/8' });
    now = 31_000;
    display.update({ ...frame, activity: 'rollout 5/8' });
    display.update({ ...frame, iteration: 13 });
    display.end();
    expect(texts.out).toBe('');
    expect(
      texts.err
        .trimEnd()
        .split('\n')
        .map((line) => line.replace(/ {2}reward.*left/, '')),
    ).toEqual(['iteration 12/60', 'iteration 12/60  (rollout 5/8)', 'iteration 13/60']);
  });

  it('on a terminal redraws its region, and leaves one line at the end', () => {
    const { printer, texts } = capture({ isTTY: true });
    const display = createLiveDisplay(printer, () => 0);
    display.update(frame);
    expect(texts.err.split('\n')).toHaveLength(4);
    texts.err = '';
    display.note('checkpoint 12');
    expect(texts.err.startsWith('\u001b[3A\r\u001b[Jcheckpoint 12\n')).toBe(true);
    texts.err = '';
    display.end();
    expect(texts.err).toBe(`\u001b[3A\r\u001b[J${progressLine(frame)}\n`);
  });
});
