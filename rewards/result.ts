import type { Scored, ScoreColumns } from './types.ts';

/**
 * A scorer's return value as a score and columns. @throws Error with the returned value when it has no finite number:
 * such a sample fails, and never gets the score 0.
 */
export function toScored(value: unknown): Scored {
  if (Array.isArray(value)) return toScored(value[0]);
  if (typeof value === 'object' && value !== null) {
    const { score, ...others } = value as Record<string, unknown>;
    if (score === undefined) throw new Error(`a scorer's object needs "score", got ${describe(value)}`);
    return { score: toNumber(score), columns: toColumns(others) };
  }
  return { score: toNumber(value), columns: {} };
}

/** Does what `toScored` does, for a list with one value for each of `samples` responses. */
export function toScoredList(value: unknown, samples: number): Scored[] {
  if (!Array.isArray(value)) throw new Error(`a scorer of lists must give a list, got ${describe(value)}`);
  if (value.length !== samples)
    throw new Error(`a scorer of lists got ${samples} responses and gave ${value.length} scores`);
  return value.map((one, i) => {
    try {
      return toScored(one);
    } catch (error) {
      throw new Error(`of response ${i}: ${error instanceof Error ? error.message : String(error)}`);
    }
  });
}

function toNumber(value: unknown): number {
  if (typeof value === 'boolean') return Number(value);
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  throw new Error(`a scorer must give a finite number, got ${describe(value)}`);
}

/** Numbers, texts and booleans unchanged; a number that JSON cannot represent as null; other values as JSON text. */
function toColumns(values: Readonly<Record<string, unknown>>): ScoreColumns {
  const columns: Record<string, number | string | boolean | null> = {};
  for (const [name, value] of Object.entries(values)) {
    if (typeof value === 'number') columns[name] = Number.isFinite(value) ? value : null;
    else if (typeof value === 'string' || typeof value === 'boolean' || value === null) columns[name] = value;
    else if (value !== undefined) columns[name] = asText(value);
  }
  return columns;
}

function describe(value: unknown): string {
  const text = typeof value === 'number' ? String(value) : asText(value);
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}

/** JSON if possible: a scorer may return anything, such as cycles and big integers. */
function asText(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
}
