/** The parameters of a model, as the headers of its folder's files name them: no server is asked for them. */
import { InvalidInputError } from '../../../../core/errors.ts';
import type { ComputeType, EngineParameter } from '../../../../core/parameters.ts';
import { readConfigJson } from '../../../../models/folder.ts';
import { openSafetensors } from '../../../../models/safetensors.ts';

/** Names of the embedding: its rows are looked up, so no product rounds it to bf16. */
const embedding = /(?:^|\.)(?:embed_tokens|wte|word_embeddings|embed_in)\.weight$/;
const head = 'lm_head.weight';
/** Names of tensors with a row for each token. */
const ofTokens = /(?:^|\.)(?:lm_head|embed_out)\.(?:weight|bias)$/;

/** The tensors that have a row for each token of the vocabulary: the embedding, and a head that is not tied to it. */
export const rowsOfTokens = (parameters: readonly EngineParameter[], vocab: number): ReadonlySet<string> =>
  new Set(
    parameters
      .filter(({ name, shape }) => shape[0] === vocab && (embedding.test(name) || ofTokens.test(name)))
      .map(({ name }) => name),
  );

/** Names ascending, as they are published. Throws InvalidInputError for a folder without weights. */
export async function parametersOf(folder: string, compute: ComputeType): Promise<EngineParameter[]> {
  const { tie_word_embeddings: isTied } = await readConfigJson(folder);
  const files = await openSafetensors(folder);
  try {
    let offset = 0;
    return [...files.tensors.values()]
      .filter(({ name }) => !(isTied === true && name === head))
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .map(({ name, shape, dtype }) => {
        if (!['F32', 'BF16', 'F16'].includes(dtype))
          throw new InvalidInputError(`${folder}: ${name} is of type ${dtype}: no weights of a model that is trained`);
        const size = shape.reduce((product, length) => product * length, 1);
        const isRounded = compute === 'bf16' && shape.length === 2 && !embedding.test(name);
        const parameter = { name, shape, offset, size, computed: isRounded ? ('BF16' as const) : ('F32' as const) };
        offset += size;
        return parameter;
      });
  } finally {
    await files.close();
  }
}
