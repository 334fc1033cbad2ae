/**
 * Refuses rows with tokens that the model has no embedding for. A tokenizer with added tokens can give such ids when
 * nobody resized the model. Most models have more embeddings than their tokenizer has tokens, and then nothing is
 * looked at.
 */
import { at } from '../../core/at.ts';
import type { InvalidInputError } from '../../core/errors.ts';
import type { BatchTokenizer } from '../tokenizer.ts';
import { rowError } from './raw.ts';
import { type RowFault, RowRenderer, templateOf } from './render.ts';
import type { Row } from './rows.ts';
import type { TokenizeOptions } from './tokenize.ts';

const batchRows = 256;

/**
 * Passes the rows on. Throws InvalidInputError with file, row and token at the first one that the model cannot read.
 */
export async function* knownTokens(
  rows: AsyncIterable<Row>,
  tokenizer: BatchTokenizer,
  options: TokenizeOptions,
  vocab: number,
): AsyncGenerator<Row> {
  if (tokenizer.vocabSize <= vocab) {
    yield* rows;
    return;
  }
  const renderer = new RowRenderer(tokenizer, { ...options, template: templateOf(tokenizer, options) });
  let batch: Row[] = [];
  for await (const row of rows) {
    if (batch.push(row) < batchRows) continue;
    await refuseUnknown(batch, renderer, tokenizer, vocab);
    yield* batch;
    batch = [];
  }
  await refuseUnknown(batch, renderer, tokenizer, vocab);
  yield* batch;
}

async function refuseUnknown(
  rows: readonly Row[],
  renderer: RowRenderer,
  tokenizer: BatchTokenizer,
  vocab: number,
): Promise<void> {
  const texts = rows.map((row) => renderer.render(row, (...why) => rowError(row, ...why)));
  const owners = texts.flatMap(({ responses }, row) => [row, ...responses.map(() => row)]);
  const encoded = await tokenizer.encodeBatch(texts.flatMap(({ prompt, responses }) => [prompt, ...responses]));
  for (const [i, ids] of encoded.entries()) {
    const beyond = ids.find((id) => id >= vocab);
    if (beyond === undefined) continue;
    throw await unknownToken(beyond, vocab, tokenizer, (...why) => rowError(at(rows, at(owners, i)), ...why));
  }
}

/** The error for a token without an embedding, made by `fault`. */
export async function unknownToken(
  id: number,
  vocab: number,
  tokenizer: BatchTokenizer,
  fault: RowFault,
): Promise<InvalidInputError> {
  const [text = ''] = await tokenizer.decodeBatch([Int32Array.of(id)]);
  return fault(
    `the model has embeddings for the tokens 0 to ${vocab - 1}, found token ${id} (${JSON.stringify(text)})`,
    undefined,
    `the tokenizer has ${tokenizer.vocabSize} tokens: resize the model’s embedding to them (transformers: resize_token_embeddings), or take the token out of the row`,
  );
}
