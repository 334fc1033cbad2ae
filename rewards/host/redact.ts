/**
 * Keeps secrets out of what a scorer says. Reasons, columns and prints of a scorer go into records, logs and terminals, so
 * values of `env:NAME` are replaced by `[env:NAME]` where a scorer's output enters petrel.
 */

/** Shorter values are left alone: replacing `1` or `prod` would make other text unreadable. */
export const shortestSecret = 6;
/** This many characters of a longer value are enough to be replaced: a message may have been cut in the middle of it. */
const enough = 16;

/** `secrets`: values by the name of their variable. What a scorer has encoded (base64, reversed) is not recognised. */
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

/** Where pieces that overlap, or follow each other at once, end. */
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

/** As it is, as JSON and URLs write it, and its lines: prints arrive line by line. */
function formsOf(value: string): string[] {
  return [value, JSON.stringify(value).slice(1, -1), encodeURIComponent(value), ...value.split(/\r?\n/)];
}

function piecesOf(form: string): string[] {
  if (form.length < shortestSecret) return [];
  const length = Math.min(form.length, enough);
  return Array.from({ length: form.length - length + 1 }, (_, at) => form.slice(at, at + length));
}
