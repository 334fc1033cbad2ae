/** Tokenizers: ids, decoded texts, and the text after every token. */
import { type Tokenizer, openTokenizer } from '../../../models/tokenizer.ts';
import type { Evaluator, GoldenCase, Outcome } from '../types.ts';

const loaded = new Map<string, Promise<Tokenizer>>();

export const tokenizers: Evaluator = {
  family: 'tokenizers',
  handles: () => true,
  async evaluate(testCase, _file, folder) {
    const known = loaded.get(folder) ?? openTokenizer(folder);
    loaded.set(folder, known);
    return { got: await outcome(testCase, await known) };
  },
};

async function outcome({ kind, inputs }: GoldenCase, tokenizer: Tokenizer): Promise<Outcome> {
  const ids = (inputs['ids'] ?? []) as readonly number[];
  switch (kind) {
    case 'encode': {
      const text = String(inputs['text']);
      const withSpecial = await tokenizer.encode(text, { addSpecial: true });
      return {
        ids: Array.from(await tokenizer.encode(text)),
        ids_with_special: Array.from(withSpecial),
        ...decoded(withSpecial, tokenizer),
      };
    }
    case 'encode_pair':
      return {
        ids_with_special: Array.from(
          await tokenizer.encodePair(String(inputs['text']), String(inputs['pair']), { addSpecial: true }),
        ),
      };
    case 'decode':
      return decoded(ids, tokenizer);
    case 'incremental_decode': {
      const stream = tokenizer.stream({ skipSpecial: Boolean(inputs['skip_special_tokens']) });
      const texts: string[] = [];
      for (const id of ids) texts.push(stream.push(id));
      return { prefix_texts: texts };
    }
    default:
      throw new Error(`kind ${String(kind)} is not known`);
  }
}

function decoded(ids: ArrayLike<number>, tokenizer: Tokenizer): Outcome {
  return { decoded: tokenizer.decode(ids), decoded_skip_special: tokenizer.decode(ids, { skipSpecial: true }) };
}
