/** A schema's values in a few words, for `recipe explain` and error texts. */
import { modulePathPattern, modulePathText } from '../module-path.ts';
import { z } from 'zod';

interface JsonType {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly JsonType[];
  readonly items?: JsonType | readonly JsonType[];
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
  readonly format?: string;
  readonly pattern?: string;
}

/** Describes a type, for instance `integer >= 1, or null`. */
export function typeText(schema: z.ZodType): string {
  return describe(z.toJSONSchema(schema, { target: 'draft-7', io: 'input', unrepresentable: 'any' }) as JsonType);
}

function describe(type: JsonType): string {
  if (type.anyOf !== undefined) return alternatives(type.anyOf);
  if (isList(type.type)) return alternatives(type.type.map((one) => ({ ...type, type: one })));
  if (type.enum !== undefined) return `one of ${type.enum.map(String).join(', ')}`;
  if (type.const !== undefined) return String(type.const);
  if (type.format === 'date') return 'date yyyy-mm-dd';
  if (type.type === 'array') return list(type.items);
  if (type.type === 'number' || type.type === 'integer') return type.type + bounds(type);
  if (type.pattern === modulePathPattern.source) return modulePathText;
  if (type.type === 'string') return 'text';
  if (type.type === 'boolean') return 'true or false';
  return type.type === 'object' ? 'mapping' : (type.type ?? 'anything');
}

function alternatives(types: readonly JsonType[]): string {
  const texts = types.map(describe);
  return texts.length < 2 ? texts.join('') : `${texts.slice(0, -1).join(', ')}, or ${texts.at(-1) ?? ''}`;
}

/** Array.isArray does not narrow readonly arrays. */
function isList(type: JsonType['type']): type is readonly string[] {
  return Array.isArray(type);
}

function list(items: JsonType['items']): string {
  if (Array.isArray(items)) return `list of ${items.length}`;
  return `list of (${describe((items ?? {}) as JsonType)})`;
}

/** zod limits every integer to the safe range, which is not worth showing. */
function bounds(type: JsonType): string {
  const parts: string[] = [];
  if (type.minimum !== undefined && type.minimum > Number.MIN_SAFE_INTEGER) parts.push(`>= ${type.minimum}`);
  if (type.exclusiveMinimum !== undefined) {
    const integer = type.type === 'integer';
    parts.push(integer ? `>= ${type.exclusiveMinimum + 1}` : `> ${type.exclusiveMinimum}`);
  }
  if (type.maximum !== undefined && type.maximum < Number.MAX_SAFE_INTEGER) parts.push(`<= ${type.maximum}`);
  return parts.length === 0 ? '' : ` ${parts.join(', ')}`;
}
