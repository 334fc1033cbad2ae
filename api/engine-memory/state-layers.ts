/** Models that the torch engine refuses when it opens them, known from their config.json before anything starts. */
import { InvalidInputError } from '../../core/errors.ts';
import type { ModelRef } from '../../core/ports/engines.ts';
import { readConfigJson } from '../../models/folder.ts';
import { attendingTypes, familiesWithState, layerTypesOf } from '../../models/layer-types.ts';

/** Throws InvalidInputError for a model whose layers carry a state in which the sequences of a pack would mix. */
export async function refuseStateLayers({ folder }: ModelRef): Promise<void> {
  const config = await readConfigJson(folder);
  const [family, types, where] = [String(config['model_type']), layerTypesOf(config), `${folder}/config.json`];
  const index = types.findIndex((type) => !attendingTypes.includes(type));
  if (index < 0 && (types.length > 0 || !familiesWithState.has(family))) return;
  const found =
    index < 0 ? `${family} has layers` : `layer ${index} of ${family} is of type ${types[index]}, and so of a kind`;
  throw new InvalidInputError(
    `${where}: torch trains models whose layers all attend (${attendingTypes.join(', ')}); ${found} that can carry a state from token to token, in which the sequences of a pack would mix`,
    { where, hint: 'choose a model whose layers all attend, such as one of llama, qwen3 or mistral' },
  );
}
