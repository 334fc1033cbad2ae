/** Quantities in a readable form. */

/** `1 iteration`, `2 iterations`; `many` where it is not made with an s. */
export const counted = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`;

/** `850 ms`, `12 s`, `3 m 05 s`, `2 h 07 m`, `3 d 04 h`. */
export function showDuration(seconds: number): string {
  if (!Number.isFinite(seconds) || seconds < 0) return '-';
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} m ${twoDigits(whole % 60)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h ${twoDigits(minutes % 60)} m`;
  const hours = Math.round(seconds / 3600);
  return `${Math.floor(hours / 24)} d ${twoDigits(hours % 24)} h`;
}

/** `3 m ago`; `iso` prints the moment itself. */
export function showMoment(when: Date, now: Date, style: 'relative' | 'iso' = 'relative'): string {
  if (style === 'iso') return when.toISOString();
  const seconds = Math.max(0, (now.getTime() - when.getTime()) / 1000);
  const [size, unit] =
    seconds < 60 ? [1, 's'] : seconds < 3600 ? [60, 'm'] : seconds < 86400 ? [3600, 'h'] : [86400, 'd'];
  return `${Math.floor(seconds / Number(size))} ${unit} ago`;
}

/** `512 B`, `1.6 MiB`. */
export function showBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let value = bytes;
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return unit === 0 ? `${value} B` : `${value.toFixed(value < 10 ? 1 : 0)} ${units[unit]}`;
}

/** `950`, `8.1k`, `12k`, `3.4M`: for rates. */
export function showCount(count: number): string {
  if (!Number.isFinite(count)) return '-';
  const sizes = [
    [1e9, 'G'],
    [1e6, 'M'],
    [1e3, 'k'],
  ] as const;
  for (const [size, suffix] of sizes) {
    const value = count / size;
    if (Math.abs(value) >= 0.9995) return `${value.toFixed(Math.abs(value) < 9.95 ? 1 : 0)}${suffix}`;
  }
  return String(Math.round(count));
}

/** `$0.0051`: machines of small runs cost parts of a cent. */
export const showUsd = (usd: number): string => `$${usd.toFixed(4)}`;

/** Three or four significant digits, as metrics are read: `0.4123`, `1.2e-6`, `153.2`, `0`. */
export function showNumber(value: number): string {
  if (value === 0 || !Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e6) return String(value);
  if (size < 1e-3 || size >= 1e6) return value.toExponential(3).replace(/\.?0+e/, 'e');
  return String(Number(value.toPrecision(4)));
}

function twoDigits(value: number): string {
  return String(value).padStart(2, '0');
}
