/** Reads fields of a parsed JSON object; every error names the field, the expected and the found value. */
import { InvalidInputError } from '../core/errors.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A value for an error message: short, on one line. */
export function show(value: unknown): string {
  if (value === undefined) return 'nothing';
  const text = typeof value === 'bigint' ? String(value) : (JSON.stringify(value) ?? String(value));
  return text.length <= 80 ? text : `${text.slice(0, 77)}...`;
}

/**
 * Typed access to the fields of one object. A missing or null field has the value `fallback`; without a fallback it is
 * an error.
 */
export class Fields {
  readonly object: JsonObject;
  readonly where: string;

  constructor(value: unknown, where: string) {
    if (!isObject(value))
      throw new InvalidInputError(`${where}: expected a JSON object, found ${show(value)}`, { where });
    this.object = value;
    this.where = where;
  }

  has(name: string): boolean {
    return Object.hasOwn(this.object, name);
  }

  get(name: string): unknown {
    return this.has(name) ? this.object[name] : undefined;
  }

  /** A positive integer up to `max`. */
  size(name: string, fallback?: number, max = 2 ** 31 - 1): number {
    const value = this.get(name) ?? fallback;
    if (typeof value === 'number' && Number.isSafeInteger(value) && value > 0 && value <= max) return value;
    throw this.refuse(name, `an integer from 1 to ${max}`);
  }

  count(name: string, fallback?: number): number {
    const value = this.get(name) ?? fallback;
    if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
    throw this.refuse(name, 'an integer of 0 or more');
  }

  positive(name: string, fallback?: number): number {
    const value = this.get(name) ?? fallback;
    if (typeof value === 'number' && Number.isFinite(value) && value > 0) return value;
    throw this.refuse(name, 'a positive number');
  }

  flag(name: string, fallback?: boolean): boolean {
    const value = this.get(name) ?? fallback;
    if (typeof value === 'boolean') return value;
    throw this.refuse(name, 'true or false');
  }

  text(name: string, fallback?: string): string {
    const value = this.get(name) ?? fallback;
    if (typeof value === 'string') return value;
    throw this.refuse(name, 'a string');
  }

  refuse(name: string, expected: string): InvalidInputError {
    return new InvalidInputError(`${this.where}: ${name} must be ${expected}, found ${show(this.get(name))}`, {
      where: this.where,
    });
  }
}
