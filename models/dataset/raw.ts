/** A row before anybody looked at its columns, and how errors name it. */
import { InvalidInputError } from '../../core/errors.ts';

export interface RowPlace {
  readonly file: string;
  /** Line of a JSONL file, row of a Parquet file; from 1. */
  readonly number: number;
}

export interface RawRow extends RowPlace {
  /** The value for prompts, in which 1.0 is not 1 (see json.ts). */
  readonly exact: unknown;
  /** The value for metadata, made of ordinary JSON values. */
  readonly plain: unknown;
}

export function rowError(
  { file, number }: RowPlace,
  reason: string,
  cause?: unknown,
  hint?: string,
): InvalidInputError {
  return new InvalidInputError(`${file}, row ${number}: ${reason}`, {
    where: `${file}:${number}`,
    cause,
    ...(hint === undefined ? {} : { hint }),
  });
}
