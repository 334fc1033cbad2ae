/**
 * A row as a line of a block: what a scorer is given as ordinary JSON, what a template prints exactly as it was read.
 */
import { z } from 'zod';
import { isLossy, parseJson } from '../json.ts';
import { misshapen } from '../shape-check.ts';
import type { ChatMessage } from '../template.ts';
import { exactJson } from './exact-json.ts';
import type { Prompt, Row } from './rows.ts';

/** What is kept of a row: neither rendered nor tokenised. */
export type StoredRow = Omit<Row, 'file' | 'number'>;

/** The line of a row, without its end. */
export function encodeRow({
  dataSource,
  prompt,
  tools,
  response,
  rejected,
  groundTruth,
  extraInfo,
}: StoredRow): string {
  const parts = [`"dataSource":${JSON.stringify(dataSource)}`, `"prompt":${exactJson(prompt)}`];
  if (tools !== undefined) parts.push(`"tools":${exactJson(tools)}`);
  if (response !== undefined) parts.push(`"response":${exactJson(response)}`);
  if (rejected !== undefined) parts.push(`"rejected":${exactJson(rejected)}`);
  if (groundTruth !== undefined) parts.push(`"groundTruth":${JSON.stringify(groundTruth)}`);
  if (extraInfo !== undefined) parts.push(`"extraInfo":${JSON.stringify(extraInfo)}`);
  return `{${parts.join(',')}}`;
}

const message = z.record(z.string(), z.unknown());
const plainRow = z
  .object({
    dataSource: z.string(),
    prompt: z.union([z.string(), z.array(message)]),
    tools: z.array(z.unknown()),
    response: z.union([z.string(), message]),
    rejected: z.union([z.string(), message]),
    groundTruth: z.unknown(),
    extraInfo: z.unknown(),
  })
  .partial({ tools: true, response: true, rejected: true, groundTruth: true, extraInfo: true });

/** Throws when the line is no row; `where` names it. */
export function decodeRow(line: string, where: string): StoredRow {
  const plain = plainRow.safeParse(parsed(line, JSON.parse));
  if (!plain.success) throw misshapen(where, 'this line is no row');
  if (!isLossy(line)) return plain.data as StoredRow;
  const exact = parsed(line, parseJson) as Readonly<Record<string, unknown>>;
  return {
    ...(plain.data as StoredRow),
    prompt: exact['prompt'] as Prompt,
    ...(exact['tools'] === undefined ? {} : { tools: exact['tools'] as readonly unknown[] }),
    ...(exact['response'] === undefined ? {} : { response: exact['response'] as string | ChatMessage }),
    ...(exact['rejected'] === undefined ? {} : { rejected: exact['rejected'] as string | ChatMessage }),
  };
}

function parsed(line: string, parse: (text: string) => unknown): unknown {
  try {
    return parse(line);
  } catch {
    return undefined;
  }
}
