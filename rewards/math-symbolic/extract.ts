/** Finds the place where a response says its final answer. */
import { strip } from '../python-text.ts';

const boxCommand = /\\(?:boxed|fbox)\s*\{/g;
/** Braces without a backslash. */
const brace = /(?<!\\)[{}]/g;
const answerLine = /(?:^|[^\p{L}])answer\s*(?:is\s*)?:[\s*]*([^\n]*)/giu;

/**
 * The content of the last complete box; without any, the rest of the last line with `Answer:`, or the next
 * line where nothing follows. Thoughts in
 * `<think>…</think>` do not count, and a response that ends inside them has no answer. Undefined: none.
 */
export function finalAnswer(response: string): string | undefined {
  const said = afterThoughts(response);
  if (said === undefined) return undefined;
  const box = lastBox(said);
  if (box !== undefined) return box;
  const line = [...said.matchAll(answerLine)].at(-1)?.[1];
  const answer = line === undefined ? '' : strip(line.replace(/\*+\s*$/, ''));
  return answer === '' ? undefined : answer;
}

function afterThoughts(response: string): string | undefined {
  const end = response.lastIndexOf('</think>');
  if (response.lastIndexOf('<think>') > end) return undefined;
  return end === -1 ? response : response.slice(end + '</think>'.length);
}

/** The one that begins last, so the inner one of two nested ones. */
function lastBox(text: string): string | undefined {
  const boxes = new Set([...text.matchAll(boxCommand)].map((found) => found.index + found[0].length - 1));
  const open: number[] = [];
  let last = { start: -1, end: -1 };
  for (const { index } of text.matchAll(brace)) {
    if (text[index] === '{') open.push(index);
    else {
      const start = open.pop() ?? -1;
      if (boxes.has(start) && start > last.start) last = { start, end: index };
    }
  }
  return last.start === -1 ? undefined : text.slice(last.start + 1, last.end);
}
