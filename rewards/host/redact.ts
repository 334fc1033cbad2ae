/**
 * Removes secrets from a scorer's output. Reasons, columns and printed lines of a scorer go into records, logs and
 * terminals. So values of `env:NAME` are replaced by `[env:NAME]` where that output enters petrel.
 */

/** Shorter values are not replaced: replacing `1` or `prod` would make other text unreadable. */
export const shortestSecret = 6;
/**
 * A part of a longer value is replaced too if it has this many characters, because a message may have been cut inside
 * the value.
 */
const enough = 16;

/** `secrets`: values by variable name. An encoded value (base64, reversed) is not recognised. */
export function redactor(secrets: Readonly<Record<string, string>>): (text: string) => string {
  const pieces = new Map<string, string>();
  for (const [name, value] of Object.entries(secrets))
    for (const form of formsOf(value)) for (const piece of piecesOf(form)) pieces.set(piece, name);
  const lengths = [...new Set([...pieces.keys()].map((piece) => piece.length))].sort((a, b) => b - a);
  if (lengths.length === 0) return (text) => text;

  const pieceAt = (text: string, at: number) =>
    lengths.map((length) => text.slice(at, at + length)).find((piece) => pieces.has(piece));
  return (text) => {
    let shown = '';
    let kept = 0;
    for (let at = 0; at < text.length; at++) {
      const piece = pieceAt(text, at);
      if (piece === undefined) continue;
      const end = endOfRun(text, at, piece, pieceAt);
      shown += `${text.slice(kept, at)}[env:${pieces.get(piece)}]`;
      kept = end;
      at = end - 1;
    }
    return shown + text.slice(kept);
  };
}

/** The ends of pieces that overlap or are adjacent. */
function endOfRun(
  text: string,
  from: number,
  first: string,
  pieceAt: (text: string, at: number) => string | undefined,
): number {
  let end = from + first.length;
  for (let at = from + 1; at < end; at++) end = Math.max(end, at + (pieceAt(text, at)?.length ?? 0));
  return end;
}

/** The value itself, in JSON and URL form, and its lines, because printed lines arrive one by one. */
function formsOf(value: string): string[] {
  return [value, JSON.stringify(value).slice(1, -1), encodeURIComponent(value), ...value.split(/\r?\n/)];
}

function piecesOf(form: string): string[] {
  if (form.length < shortestSecret) return [];
  const length = Math.min(form.length, enough);
  return Array.from({ length: form.length - length + 1 }, (_, at) => form.slice(at, at + length));
}
