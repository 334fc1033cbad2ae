/** How deep the lists and objects of a text of JSON are nested, without reading it. */

/** The place behind the first bracket outside of strings after which the depth is as asked; undefined: it never is. */
export function placeAtDepth(text: string, isAsked: (depth: number) => boolean): number | undefined {
  let [depth, inString] = [0, false];
  for (let i = 0; i < text.length; i++) {
    const character = text[i];
    if (inString) {
      if (character === '\\') i++;
      else if (character === '"') inString = false;
    } else if (character === '"') inString = true;
    else if (character === '[' || character === '{') {
      if (isAsked(++depth)) return i + 1;
    } else if ((character === ']' || character === '}') && isAsked(--depth)) return i + 1;
  }
  return undefined;
}
