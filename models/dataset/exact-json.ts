/** JSON that `parseJson` reads back to the same value: a whole float keeps its point, a large integer its digits. */
import { Float } from '../json.ts';

/** Does what JSON.stringify does, for what `parseJson` returns. Properties that are undefined are left out. */
export function exactJson(value: unknown): string {
  if (typeof value === 'bigint') return value.toString();
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  if (value instanceof Float) return floatText(value.value);
  if (Array.isArray(value)) return `[${value.map(exactJson).join(',')}]`;
  const entries = value instanceof Map ? [...(value as Map<string, unknown>)] : Object.entries(value);
  const known = entries.filter(([, item]) => item !== undefined);
  return `{${known.map(([key, item]) => `${JSON.stringify(key)}:${exactJson(item)}`).join(',')}}`;
}

function floatText(value: number): string {
  const text = Object.is(value, -0) ? '-0' : String(value);
  return text.includes('e') ? text : `${text}.0`;
}
