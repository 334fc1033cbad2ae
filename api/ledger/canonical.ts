/** The canonical text of a JSON value (RFC 8785): no white space, keys ascending by code units. */
export function canonicalText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalText).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const object = value as Readonly<Record<string, unknown>>;
  const fields = Object.keys(object)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${canonicalText(object[name])}`);
  return `{${fields.join(',')}}`;
}
