/** A plain file of overrides: one or several on a line, as they are typed after a command or as Hydra takes them. */
import type { OverrideWord } from './entries.ts';

/** Comments, blank lines and a `\` at the end of a line are dropped. */
export function overridesIn(text: string): OverrideWord[] {
  return text.split(/\r?\n/).flatMap((source, index) => {
    const line = source.replace(/\s*\\\s*$/, '').trim();
    if (line === '' || line.startsWith('#')) return [];
    const words = shellWords(line);
    const whole = words?.every(isImportOverride) === true ? words : [line.replace(/\s+#.*$/, '')];
    return whole.map((word) => ({ text: word, line: index + 1 }));
  });
}

export const isImportOverride = (word: string): boolean => /^(?:~|\+{0,2})[A-Za-z_][\w.@/-]*(?:=|$)/.test(word);

/** Splits at blanks, with the quotes of a shell removed; undefined for a quote that is not closed. */
function shellWords(line: string): string[] | undefined {
  const words: string[] = [];
  let word: string | undefined;
  for (let at = 0; at < line.length; at += 1) {
    const char = line[at] ?? '';
    if (char === "'" || char === '"') {
      const end = line.indexOf(char, at + 1);
      if (end < 0) return undefined;
      word = (word ?? '') + line.slice(at + 1, end);
      at = end;
    } else if (char === ' ' || char === '\t') {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else if (char === '#' && word === undefined) break;
    else word = (word ?? '') + char;
  }
  return word === undefined ? words : [...words, word];
}
