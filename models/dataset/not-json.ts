/** Texts that people take for rows of JSON, known by how they begin, and how rows are made of them. */
import { quoted } from '../file-kind.ts';
import { show } from '../fields.ts';
import { placeAtDepth } from './nesting.ts';

interface NotJson {
  readonly found: string;
  readonly hint: string;
}

interface Kind extends Omit<NotJson, 'hint'> {
  readonly looks: RegExp;
  readonly hint: (file: string) => string;
}

const kinds: readonly Kind[] = [
  {
    looks: /^\s*\{\s*'/,
    found: 'the print of a Python dict',
    hint: () => 'write rows with json.dumps(row)',
  },
  {
    looks: /(?:^|\n)\s*(?:\/\/|\/\*|#)/,
    found: 'a comment, which JSON does not have',
    hint: () => 'leave the comments out',
  },
  {
    looks: /^(?:---|-(?=\s|$)|[\w-]+:(?=\s|$))/,
    found: 'YAML',
    hint: (file) =>
      `python3 -c "import json, sys, yaml; [print(json.dumps(row)) for row in yaml.safe_load(open(sys.argv[1]))]" ${quoted(file)} > rows.jsonl`,
  },
  {
    looks: /^\s*\{\s*[A-Za-z_$][\w$]*\s*:/,
    found: 'a key without quotes, as in JSON5 and JavaScript',
    hint: () => 'write keys and texts in double quotes',
  },
];

/** Characters at each end of a text that are looked at: the text may be hundreds of MiB. */
const looked = 2_000;

const endsWithComma = (end: string): boolean => /,\s*[\]}]\s*$/.test(end);

/** Does it begin neither as an object, a list or a string, nor as a number that JSON does not have? */
const isPlain = (text: string): boolean => /^\s*(?!NaN\b|-?Infinity\b)[^\s{["]/.test(text);

/** What stands between two rows in one line: lines must end with a line feed. */
function separatorOf(text: string, file: string): NotJson | undefined {
  const end = placeAtDepth(text, (depth) => depth <= 0);
  const between = end === undefined ? undefined : /^([\s\u0085]*)[{[]/.exec(text.slice(end, end + looked))?.[1];
  if (between === undefined) return undefined;
  if (between.includes('\r'))
    return {
      found: 'two rows between which stands a carriage return alone',
      hint: String.raw`tr '\r' '\n' < ${quoted(file)} > lines.jsonl`,
    };
  const hint = 'write each row on a line of its own';
  const isUnicode = /[\u2028\u2029\u0085]/.test(between);
  return { found: isUnicode ? 'two rows between which stands a line separator of Unicode' : 'more than one row', hint };
}

/** What a text is that is no JSON; undefined: only its parser knows what is wrong. */
export function notJson(text: string, file: string): NotJson | undefined {
  const begin = text.slice(0, looked);
  const kind = kinds.find(({ looks }) => looks.test(begin));
  if (kind !== undefined) return { found: kind.found, hint: kind.hint(file) };
  if (endsWithComma(text.slice(-looked)))
    return { found: 'a comma before the closing bracket', hint: 'leave the comma out' };
  const between = separatorOf(text, file);
  if (between !== undefined) return between;
  if (!isPlain(begin)) return undefined;
  return {
    found: `plain text: ${show(begin.trim())}`,
    hint: 'write each row as an object on a line of its own: {"prompt": [{"role": "user", "content": …}], "reward_model": {"ground_truth": …}}',
  };
}
