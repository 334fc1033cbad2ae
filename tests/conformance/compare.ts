import type { Outcome, Tolerance } from './types.ts';

/**
 * |got − want| ≤ abs + rel·|want|, element by element. NaN and infinities are the strings of the format; a mask or flag
 * 0/1 matches a boolean. Objects inside a field must have exactly the wanted keys; at the top, extra keys are ignored.
 */
export interface Comparison {
  /** Empty when everything passed; otherwise the first few differences, each with its place. */
  readonly differences: readonly string[];
  readonly maxAbs: Extreme;
  /** Only over elements that are larger than the absolute tolerance: a relative error of a tiny value means nothing. */
  readonly maxRel: Extreme;
}

export interface Extreme {
  readonly error: number;
  readonly where: string;
}

export const NO_ERROR: Extreme = { error: 0, where: '' };
const MAX_REPORTED = 3;

export function compareOutcome(got: Outcome, want: Outcome, tolerance: Tolerance, inputs: Outcome = {}): Comparison {
  const comparer = new Comparer(tolerance, maskOf(inputs));
  for (const [key, value] of Object.entries(want)) {
    if (key in got) comparer.compare(got[key], value, [key]);
    else comparer.differ([key], 'missing');
  }
  return comparer;
}

export function largest(a: Extreme, b: Extreme): Extreme {
  return b.error > a.error ? b : a;
}

type Path = readonly (string | number)[];

class Comparer implements Comparison {
  readonly differences: string[] = [];
  maxAbs = NO_ERROR;
  maxRel = NO_ERROR;
  readonly #tolerance: Tolerance;
  readonly #mask: unknown;

  constructor(tolerance: Tolerance, mask: unknown) {
    this.#tolerance = tolerance;
    this.#mask = mask;
  }

  compare(got: unknown, want: unknown, path: Path): void {
    if (isArray(want)) this.#compareArrays(got, want, path);
    else if (typeof want === 'object' && want !== null) this.#compareObjects(got, want, path);
    else if (asNumber(want) !== undefined && asNumber(got) !== undefined) {
      this.#compareNumbers(asNumber(got) ?? NaN, asNumber(want) ?? NaN, path);
    } else if ((got ?? null) !== want) this.differ(path, `${show(got)}, expected ${show(want)}`);
  }

  differ(path: Path, what: string): void {
    if (this.differences.length < MAX_REPORTED) this.differences.push(`${path.join('.')}: ${what}`);
  }

  #compareArrays(got: unknown, want: ArrayLike<unknown>, path: Path): void {
    if (!isArray(got)) return this.differ(path, `${show(got)}, expected an array`);
    if (got.length !== want.length) return this.differ(path, `${got.length} elements, expected ${want.length}`);
    for (let i = 0; i < want.length; i++) this.compare(got[i], want[i], [...path, i]);
  }

  #compareObjects(got: unknown, want: object, path: Path): void {
    if (typeof got !== 'object' || got === null) return this.differ(path, `${show(got)}, expected an object`);
    const gotFields = new Map<string, unknown>(got instanceof Map ? got : Object.entries(got));
    for (const [key, value] of Object.entries(want)) {
      if (gotFields.has(key)) this.compare(gotFields.get(key), value, [...path, key]);
      else this.differ([...path, key], 'missing');
    }
    for (const key of gotFields.keys()) if (!(key in want)) this.differ([...path, key], 'not expected');
  }

  #compareNumbers(got: number, want: number, path: Path): void {
    if (Object.is(got, want) || got === want || (Number.isNaN(want) && this.#isGradientLeak(got, path))) return;
    const error = Math.abs(got - want);
    const { abs, rel } = this.#toleranceAt(path);
    const allowed = Number.isFinite(want) ? abs + rel * Math.abs(want) : 0;
    if (!(error <= allowed)) {
      this.differ(path, `${got}, expected ${want} (off by ${error.toExponential(2)})`);
    }
    if (!Number.isFinite(error)) return;
    const where = path.join('.');
    this.maxAbs = largest(this.maxAbs, { error, where });
    if (Math.abs(want) > abs) this.maxRel = largest(this.maxRel, { error: error / Math.abs(want), where });
  }

  /** `tolerance.fields` names fields at any depth: `parameters.<tensor>.sum` uses that of `sum`. */
  #toleranceAt(path: Path): { abs: number; rel: number } {
    const { abs, rel, fields } = this.#tolerance;
    for (const part of fields === undefined ? [] : path.toReversed()) {
      const special = fields?.[part];
      if (special !== undefined) return { abs: special, rel };
    }
    return { abs, rel };
  }

  /** 0 · NaN in the reference's backward pass: where the mask is 0, a NaN gradient counts as 0. */
  #isGradientLeak(got: number, path: Path): boolean {
    if (got !== 0 || !String(path[0]).startsWith('grad')) return false;
    const [, row, column] = path;
    const maskRow = isArray(this.#mask) && typeof row === 'number' ? this.#mask[row] : undefined;
    return isArray(maskRow) && typeof column === 'number' && maskRow[column] === 0;
  }
}

function maskOf(inputs: Outcome): unknown {
  return inputs['response_mask'] ?? inputs['loss_mask'] ?? inputs['mask'];
}

function isArray(value: unknown): value is ArrayLike<unknown> {
  return Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView));
}

function asNumber(value: unknown): number | undefined {
  if (typeof value === 'number') return value;
  if (typeof value === 'boolean') return Number(value);
  if (value === 'NaN' || value === 'Infinity' || value === '-Infinity') return Number(value);
  return undefined;
}

function show(value: unknown): string {
  const text = isArray(value) ? `an array of ${value.length}` : (JSON.stringify(value) ?? String(value));
  return text.length > 120 ? `${text.slice(0, 120)}…` : text;
}
