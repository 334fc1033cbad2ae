/** Numbers in records. JSON has no NaN and no infinities, so records contain them as strings. */
export type JsonNumber = number | 'NaN' | 'Infinity' | '-Infinity';

export function numberToJson(value: number): JsonNumber {
  if (Number.isNaN(value)) return 'NaN';
  if (value === Number.POSITIVE_INFINITY) return 'Infinity';
  if (value === Number.NEGATIVE_INFINITY) return '-Infinity';
  return value;
}

export function numbersToJson(values: Readonly<Record<string, number>>): Record<string, JsonNumber> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, numberToJson(value)]));
}
