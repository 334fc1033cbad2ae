/** The five fields of cron: minute, hour, day of month, month, day of week. */
import { InvalidInputError } from '../errors.ts';
import { showValue } from '../recipe/show-value.ts';

/** Values that match, ascending. Months 1 to 12, days of the week 0 (Sunday) to 6. */
export interface CronFields {
  readonly minutes: readonly number[];
  readonly hours: readonly number[];
  readonly daysOfMonth: readonly number[];
  readonly months: readonly number[];
  readonly daysOfWeek: readonly number[];
}

interface Field {
  readonly name: string;
  readonly least: number;
  readonly most: number;
  /** Words for the values from `least` on. */
  readonly words?: readonly string[];
}

const monthWords = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const dayWords = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];

const fields: readonly Field[] = [
  { name: 'minute', least: 0, most: 59 },
  { name: 'hour', least: 0, most: 23 },
  { name: 'day of month', least: 1, most: 31 },
  { name: 'month', least: 1, most: 12, words: monthWords },
  // 7 means Sunday too, so that ranges such as 5-7 and mon-sun are possible.
  { name: 'day of week', least: 0, most: 7, words: [...dayWords, 'sun'] },
];

/** Days of the longest February, and so on: a day beyond that never comes. */
const longestMonth = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** Throws InvalidInputError that names the field. */
export function parseCron(text: string): CronFields {
  const parts = text.trim().split(/\s+/);
  if (parts.length !== fields.length) {
    throw refuse(
      text,
      `expected 5 fields (minute, hour, day of month, month, day of week), got ${text.trim() === '' ? 0 : parts.length}`,
    );
  }
  const [minutes = [], hours = [], daysOfMonth = [], months = [], weekdays = []] = fields.map((field, index) =>
    valuesOf(text, field, parts[index] ?? ''),
  );
  const daysOfWeek = ascending(weekdays.map((day) => day % 7));
  if (parts[2] !== '*' && parts[4] !== '*' && daysOfMonth.length < 31 && daysOfWeek.length < 7) {
    throw refuse(
      text,
      'day of month and day of week cannot both be chosen: programs differ in whether both or either must match',
      'set one of them to *',
    );
  }
  if (!months.some((month) => (daysOfMonth[0] ?? 0) <= (longestMonth[month - 1] ?? 0))) {
    throw refuse(text, 'none of the given months has such a day, so the time would never come');
  }
  return { minutes, hours, daysOfMonth, months, daysOfWeek };
}

/** `*`, `5`, `1-5`, a step `/15` behind `*` or a range, and lists of these. */
function valuesOf(cron: string, field: Field, text: string): number[] {
  return ascending(text.split(',').flatMap((part) => rangeOf(cron, field, part)));
}

function rangeOf(cron: string, field: Field, part: string): number[] {
  const [span = '', stepText, ...more] = part.split('/');
  const ends =
    span === '*' ? [String(field.least), String(field.name === 'day of week' ? 6 : field.most)] : span.split('-');
  const step = stepText === undefined ? 1 : Number(/^\d+$/.test(stepText) ? stepText : Number.NaN);
  if (more.length > 0 || ends.length > 2)
    throw refuse(cron, `${field.name}: ${showValue(part)} is no value, range or step`);
  const [first = Number.NaN, last = first] = ends.map((end) => valueOf(cron, field, end));
  if (!(step >= 1) || (stepText !== undefined && ends.length === 1)) {
    throw refuse(
      cron,
      `${field.name}: ${showValue(part)}: a step is a number from 1 on, behind * or a range`,
      'for instance */15 or 0-30/10',
    );
  }
  if (first > last) throw refuse(cron, `${field.name}: ${showValue(part)} ends before it starts`);
  return Array.from({ length: Math.floor((last - first) / step) + 1 }, (_, index) => first + index * step);
}

function valueOf(cron: string, { name, least, most, words }: Field, text: string): number {
  const index = words?.indexOf(text.toLowerCase()) ?? -1;
  const value = index >= 0 ? least + index : /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  throw refuse(
    cron,
    `${name}: expected ${least} to ${most}${words === undefined ? '' : ` or ${words[0]}, ${words[1]} …`}, got ${showValue(text)}`,
  );
}

function refuse(
  cron: string,
  why: string,
  hint = "for instance '0 3 * * *' (every day at 3:00) or '*/15 9-17 * * mon-fri'",
): InvalidInputError {
  return new InvalidInputError(`--cron ${showValue(cron)}: ${why}`, { hint });
}

function ascending(values: readonly number[]): number[] {
  return [...new Set(values)].sort((a, b) => a - b);
}
