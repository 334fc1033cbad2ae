/**
 * What is printed may come from a model, a scorer, a worker or a stored record. Control characters in it could move the
 * cursor, clear the screen or set the window's title, so the printer shows them as visible characters.
 */

/** C0 without tab and line feed, DEL, C1, and the marks that turn the direction of text. */
const hostile = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** The codes that `styled` writes, and no others. */
const ownStyles = /(\u001b\[(?:1|2|22|31|32|33|36|39)m)/;

/** The text with each control character replaced by a visible one. Tabs and line feeds stay. */
export function printable(text: string): string {
  return text.replace(hostile, (char) => {
    const code = char.codePointAt(0) ?? 0;
    return code < 0x20 ? String.fromCodePoint(0x2400 + code) : '�';
  });
}

/** Does what `printable` does, but keeps petrel's own colours. A hostile text can fake a colour, and nothing else. */
export function printableStyled(text: string): string {
  if (!text.includes('\u001b')) return printable(text);
  return text
    .split(ownStyles)
    .map((piece, index) => (index % 2 === 1 ? piece : printable(piece)))
    .join('');
}

/** JSON with the same characters escaped: it parses to the same value. JSON.stringify itself escapes only C0. */
export function printableJson(json: string): string {
  return json.replace(hostile, (char) => `\\u${(char.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`);
}
