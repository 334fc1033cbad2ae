/**
 * Rows of a begun run as tokens. `petrel plan` and the start of a run refuse rows that the model cannot take, but a
 * large dataset is not tokenised whole there. What a person can mend pauses the run; nothing that it has learned is
 * lost.
 */
import { at } from '../../../core/at.ts';
import { InvalidInputError, PauseError } from '../../../core/errors.ts';
import { vocabOf } from '../../../models/config.ts';
import { unknownToken } from '../../../models/dataset.ts';
import type { Dataset, Sequence } from '../../../models/dataset-rows.ts';
import type { BatchTokenizer } from '../../../models/tokenizer.ts';
import { configOf } from '../../../models/loaded-configs.ts';

/** Reads the rows for the model in `folder`. Throws PauseError `RowRefused` with the row, counted from 0. */
export async function rowSequences(
  dataset: Dataset,
  rows: readonly number[],
  tokenizer: BatchTokenizer,
  folder: string,
): Promise<Sequence[]> {
  try {
    const sequences = await dataset.sequences(rows, tokenizer);
    const vocab = vocabOf(await configOf(folder), folder);
    if (tokenizer.vocabSize > vocab)
      for (const [i, sequence] of sequences.entries()) await refuseBeyond(sequence, at(rows, i), vocab, tokenizer);
    return sequences;
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    throw new PauseError('RowRefused', error.message, {
      hint: error.hint ?? 'mend the row, and begin a run with the new file: petrel plan <recipe> checks it',
      ...(error.where !== undefined && { where: error.where }),
      cause: error,
    });
  }
}

async function refuseBeyond(
  { prompt, response, rejected }: Sequence,
  row: number,
  vocab: number,
  tokenizer: BatchTokenizer,
): Promise<void> {
  for (const ids of [prompt, response, rejected?.prompt, rejected?.response]) {
    const beyond = ids?.find((id) => id >= vocab);
    if (beyond === undefined) continue;
    const where = `row ${row} (from 0)`;
    throw await unknownToken(beyond, vocab, tokenizer, (reason, cause, hint) => {
      return new InvalidInputError(`${where}: ${reason}`, { where, cause, ...(hint !== undefined && { hint }) });
    });
  }
}
