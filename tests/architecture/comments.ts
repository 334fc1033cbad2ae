/** The rules for comments and lines that tests/comments.test.ts checks. */

interface Text {
  readonly path: string;
  readonly text: string;
}

const mostColumns = 120;

/** A sentence that begins with one of these words has no subject: "Of the tree.", "By pool." */
const never = /^(Of|For|By|As|Those|So|Like|Per|From|Until|Not|Nothing but|Beside|Via)\b(?!-)/;

/** These words may begin a sentence only when a main clause follows: "In a fork, the base is read." */
const withClause =
  /^(Where|At|In|On|To|With|Without|Before|After|When|While|If|Because|Since|Under|Over|Between|Among|Inside|Outside|Within|Above|Below|Beyond|During|Into)\b(?!-)/;

/** Doc comments whose first sentence has no subject, as `file:line: sentence`. */
export function brokenSentences({ path, text }: Text): string[] {
  return [...text.matchAll(/\/\*\*([\s\S]*?)\*\//g)].flatMap((match) => {
    const sentence = firstSentence(String(match[1]));
    const line = text.slice(0, match.index).split('\n').length;
    return hasSubject(sentence) ? [] : [`${path}:${line}: ${sentence}`];
  });
}

function firstSentence(body: string): string {
  const prose = body
    .replace(/^\s*\* ?/gm, ' ')
    .replace(/\s+/g, ' ')
    .replace(/`[^`]*`/g, (code) => code.replace(/[.:,]/g, '_'))
    .trim();
  return /^.*?[.:](?=\s|$)/.exec(prose)?.[0] ?? prose;
}

function hasSubject(sentence: string): boolean {
  return !never.test(sentence) && (!withClause.test(sentence) || sentence.includes(', '));
}

/** Lines that are too long without the content of their strings and patterns, which no formatter can break. */
export function longLines({ path, text }: Text): string[] {
  const rest = /\.(?:py|yaml|txt)$/.test(path) ? withoutQuotedByHash(text) : withoutQuoted(text);
  const isAddress = /^\s*(?:#|\*|\/\/)?\s*\w+:\/\/\S+$/;
  return rest
    .split('\n')
    .flatMap((line, i) => (isLong(line) && !isAddress.test(line) ? [`${path}:${i + 1}: ${line}`] : []));
}

/** Lines of prose that are too long. A row of a table cannot be broken, and neither can code or a long link. */
export function longProse(text: string): string[] {
  const prose = text.replace(/^```[\s\S]*?^```/gm, '').split('\n');
  const isWhole = /^\s*(?:\||\S*\]\(\S+\)\S*$|`[^`]+`\S*$|\S+$)/;
  return prose.filter((line) => isLong(line) && !isWhole.test(line));
}

/** Whether the line has too many characters; an emoji is one. */
function isLong(line: string): boolean {
  return [...line].length > mostColumns;
}

/** The text without the content of strings, where comments begin with #. Docstrings stay: they are prose. */
function withoutQuotedByHash(text: string): string {
  const parts = /"""[\s\S]*?"""|(?<!\S)#[^\n]*|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/g;
  return text.replace(parts, (part) => (/^(?:#|""")/.test(part) ? part : ''));
}

/** The text without the content of strings, templates and patterns. Comments stay, and so do line breaks. */
function withoutQuoted(text: string): string {
  const parts =
    /\/\*[\s\S]*?\*\/|\/\/[^\n]*|(?<=(?:[(=:,?&|!]|return)\s*)\/(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\[\s\S])*`/gm;
  return text.replace(parts, (part) => (/^\/[/*]/.test(part) ? part : part.replace(/[^\n]/g, '')));
}
