/** Datasets: rows of JSON and Parquet files in verl's layout, checked, rendered and tokenised. */
export { readRows, verlColumns } from './dataset/rows.ts';
export type { Prompt, Row, RowColumns } from './dataset/rows.ts';
export { rawRows } from './dataset/raw-rows.ts';
export { rowError } from './dataset/raw.ts';
export type { RawRow, RowPlace } from './dataset/raw.ts';
export { knownTokens, unknownToken } from './dataset/known-tokens.ts';
export { packRows } from './dataset/pack.ts';
export type { PackedRows, PackOptions } from './dataset/pack.ts';
export type { PutBlock } from './dataset/blocks.ts';
export { tokenizeRows } from './dataset/tokenize.ts';
export type { RowCounts, TokenizeOptions, TokenizedRows } from './dataset/tokenize.ts';
export type { Truncation } from './dataset/truncate.ts';
export { gsm8kInstruction } from './dataset/gsm8k.ts';
