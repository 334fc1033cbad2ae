/** Checks of decoded tensors before they are used as indices: matching lengths, offsets and indices in range. */
import { at } from '../core/at.ts';
import { damage } from '../core/records/damage.ts';
import type { PauseError } from '../core/errors.ts';

type Numbers = Int32Array | Float32Array | Uint8Array;

/** Throws PauseError `DamagedRecord` unless each tensor, by name, has this length. */
export function checkLengths(
  where: string,
  length: number,
  tensors: Readonly<Record<string, Numbers | undefined>>,
): void {
  for (const [name, tensor] of Object.entries(tensors)) {
    if (tensor !== undefined && tensor.length !== length)
      throw misshapen(where, `tensor ${name}: expected ${length} values, found ${tensor.length}`);
  }
}

/** Throws PauseError `DamagedRecord` unless the offsets divide `total` values into `parts` ranges, in order. */
export function checkOffsets(where: string, name: string, offsets: Int32Array, parts: number, total: number): void {
  if (!Number.isInteger(parts) || offsets.length !== parts + 1)
    throw misshapen(where, `tensor ${name}: expected ${parts} ranges, found ${offsets.length} offsets`);
  if (offsets[0] !== 0 || offsets[parts] !== total)
    throw misshapen(where, `tensor ${name}: expected offsets from 0 to ${total}`);
  for (let i = 0; i < parts; i++)
    if (at(offsets, i) > at(offsets, i + 1)) throw misshapen(where, `tensor ${name}: range ${i} ends before it starts`);
}

/** Throws PauseError `DamagedRecord` unless all values are indices below `count`. */
export function checkIndices(where: string, name: string, values: Int32Array, count: number): void {
  const wrong = values.findIndex((value) => value < 0 || value >= count);
  if (wrong >= 0)
    throw misshapen(where, `tensor ${name}: value ${values[wrong]} at ${wrong} is not an index below ${count}`);
}

export function misshapen(where: string, what: string): PauseError {
  return damage('DamagedRecord', where, what);
}
