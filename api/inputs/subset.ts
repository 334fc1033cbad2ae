/**
 * `data.train_max_samples` and `data.val_max_samples` as in verl: the first rows, or with `data.shuffle` random ones,
 * chosen by `data.seed`, before overlong rows are left out. verl chooses by numpy's generator; the rows are others
 * here, and stay in the order of the files.
 */
import { InvalidInputError } from '../../core/errors.ts';
import { permute } from '../../core/rl/permutation.ts';

/** Which purpose of the seed this is: the order of draws has keys of two numbers. */
const purpose = 0x5ab5e7;

/** 1 at the places of the chosen rows. */
export function chosenPlaces(total: number, wanted: number, seed: number, part: 'train' | 'validation'): Uint8Array {
  const places = new Uint8Array(total);
  if (wanted >= total) return places.fill(1);
  const key = [seed, purpose, part === 'train' ? 0 : 1];
  for (let i = 0; i < wanted; i++) places[permute(i, total, key)] = 1;
  return places;
}

/** The rows at these places. Throws InvalidInputError when there are more or fewer rows than places. */
export async function* rowsAt<Row>(rows: AsyncIterable<Row>, places: Uint8Array, where: string): AsyncGenerator<Row> {
  let i = 0;
  for await (const row of rows) if (places[i++] === 1) yield row;
  if (i !== places.length)
    throw new InvalidInputError(`${where}: ${places.length} rows when they were counted, ${i} when they were read`, {
      where,
      hint: 'start the run again when no program writes to the files',
    });
}
