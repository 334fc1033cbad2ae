/** The text of a row of JSON as a row. */
import { isLossy, parseJson } from '../json.ts';
import { placeAtDepth } from './nesting.ts';
import { notJson } from './not-json.ts';
import { type RawRow, type RowPlace, rowError } from './raw.ts';

/** Deepest nesting of a row. Deeper rows would break whoever walks through them. */
const mostDepth = 1000;

/** `expected`: what an error says first. Throws InvalidInputError with file and row. */
export function parseRow(text: string, place: RowPlace, expected: string): RawRow {
  if (depthIsOver(text, mostDepth))
    throw rowError(
      place,
      `expected a row whose lists and objects are nested at most ${mostDepth} deep, found a deeper one`,
    );
  try {
    const exact = parseJson(text);
    return { ...place, exact, plain: isLossy(text) ? (JSON.parse(text) as unknown) : exact };
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    const known = reason.startsWith('Bad control character') ? undefined : notJson(text, place.file);
    if (known !== undefined) throw rowError(place, `${expected}, found ${known.found}`, cause, known.hint);
    throw rowError(place, `${expected}: ${reason}`, cause);
  }
}

/** Is a list or an object nested deeper than this? Short texts and texts with few brackets are not looked through. */
function depthIsOver(text: string, most: number): boolean {
  if (text.length <= 2 * most || !hasOpenings(text, most)) return false;
  return placeAtDepth(text, (depth) => depth > most) !== undefined;
}

function hasOpenings(text: string, count: number): boolean {
  let found = 0;
  for (const opening of ['[', '{'])
    for (let i = text.indexOf(opening); i >= 0; i = text.indexOf(opening, i + 1)) if (++found > count) return true;
  return false;
}
