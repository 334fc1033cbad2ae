/** strftime in the C locale, for a given clock. */
import { InvalidInputError } from '../../core/errors.ts';

const days = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
const months = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
];
const dayMs = 86_400_000;

/**
 * Reads `2026-01-02T03:04:05` as a local time without zone, so that the same text gives the same prompt on every
 * machine.
 */
export function parseClock(text: string): Date {
  const match = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?)?$/.exec(text);
  const date =
    match === null
      ? undefined
      : new Date(
          `${text.slice(0, 10)}T${match[4] ?? '00'}:${match[5] ?? '00'}:${match[6] ?? '00'}.${(match[7] ?? '0').padEnd(3, '0').slice(0, 3)}Z`,
        );
  if (date === undefined || Number.isNaN(date.getTime())) {
    throw new InvalidInputError(
      `the template's clock must look like 2026-01-02T03:04:05, found ${JSON.stringify(text)}`,
    );
  }
  return date;
}

/** Fields are read in UTC, because parseClock wrote them in UTC. */
export function strftime(date: Date, format: string): string {
  return format.replace(/%([-_0^#]?)(\d*)([a-zA-Z%])/g, (whole, flag: string, _width: string, letter: string) => {
    const shown = field(date, letter);
    if (shown === undefined) return whole;
    if (flag === '-') return shown.replace(/^[0 ]+(?=.)/, '');
    if (flag === '_') return shown.replace(/^0+(?=.)/, (zeros) => ' '.repeat(zeros.length));
    if (flag === '^') return shown.toUpperCase();
    return shown;
  });
}

function field(date: Date, letter: string): string | undefined {
  const year = date.getUTCFullYear();
  const [day, weekday, month, hour] = [date.getUTCDate(), date.getUTCDay(), date.getUTCMonth(), date.getUTCHours()];
  const yearDay = Math.floor((Date.UTC(year, month, day) - Date.UTC(year, 0, 1)) / dayMs);
  const hour12 = hour % 12 === 0 ? 12 : hour % 12;
  const compose = (format: string): string => strftime(date, format);
  const iso = isoWeek(date);
  const fields: Readonly<Record<string, string>> = {
    a: (days[weekday] ?? '').slice(0, 3),
    A: days[weekday] ?? '',
    b: (months[month] ?? '').slice(0, 3),
    B: months[month] ?? '',
    d: two(day),
    e: String(day).padStart(2),
    H: two(hour),
    I: two(hour12),
    k: String(hour).padStart(2),
    l: String(hour12).padStart(2),
    j: String(yearDay + 1).padStart(3, '0'),
    m: two(month + 1),
    M: two(date.getUTCMinutes()),
    S: two(date.getUTCSeconds()),
    f: String(date.getUTCMilliseconds() * 1000).padStart(6, '0'),
    p: hour < 12 ? 'AM' : 'PM',
    P: hour < 12 ? 'am' : 'pm',
    y: two(year % 100),
    Y: String(year),
    C: two(Math.floor(year / 100)),
    u: String(weekday === 0 ? 7 : weekday),
    w: String(weekday),
    U: two(Math.floor((yearDay + 7 - weekday) / 7)),
    W: two(Math.floor((yearDay + 7 - ((weekday + 6) % 7)) / 7)),
    G: String(iso.year),
    g: two(iso.year % 100),
    V: two(iso.week),
    s: String(Math.floor(date.getTime() / 1000)),
    z: '',
    Z: '',
    n: '\n',
    t: '\t',
    '%': '%',
  };
  if (Object.hasOwn(fields, letter)) return fields[letter];
  const composed: Readonly<Record<string, string>> = {
    c: '%a %b %e %H:%M:%S %Y',
    D: '%m/%d/%y',
    F: '%Y-%m-%d',
    h: '%b',
    r: '%I:%M:%S %p',
    R: '%H:%M',
    T: '%H:%M:%S',
    x: '%m/%d/%y',
    X: '%H:%M:%S',
  };
  return Object.hasOwn(composed, letter) ? compose(composed[letter] ?? '') : undefined;
}

function isoWeek(date: Date): { year: number; week: number } {
  const thursday = new Date(
    Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate() + 3 - ((date.getUTCDay() + 6) % 7)),
  );
  const year = thursday.getUTCFullYear();
  return { year, week: 1 + Math.floor((thursday.getTime() - Date.UTC(year, 0, 1)) / dayMs / 7) };
}

function two(value: number): string {
  return String(value).padStart(2, '0');
}
