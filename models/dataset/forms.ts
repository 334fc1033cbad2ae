/**
 * Forms in which rows are published, known by their columns, and what to type for a run that expects another form.
 */
import type { RowKind } from '../../core/run-kinds.ts';
import { quoted } from '../file-kind.ts';
import { isObject } from '../fields.ts';

type Columns = Readonly<Record<string, unknown>>;

interface Form {
  /** The form and its columns, for an error. */
  readonly name: string;
  readonly fits: (row: Columns) => boolean;
  /** What to type, by the kind of rows that the run expects; undefined: nothing is known to fit. */
  readonly advice: (file: string, kind: RowKind, row: Columns) => string | undefined;
}

/** What a row is, and what to do. */
export interface KnownForm {
  readonly name: string;
  readonly advice: string;
}

/** The form of a row that the run cannot read, if it is a known one that the run is not set to read already. */
export function knownForm(
  row: unknown,
  file: string,
  { kind, promptKey, isGsm8k }: { readonly kind: RowKind; readonly promptKey: string; readonly isGsm8k: boolean },
): KnownForm | undefined {
  if (!isObject(row)) return undefined;
  const isSet = (text: string) =>
    (isGsm8k && text.includes('data.format: gsm8k')) || /data\.prompt_key: (\S+)$/.exec(text)?.[1] === promptKey;
  for (const { name, fits, advice } of forms) {
    const text = fits(row) ? advice(file, kind, row) : undefined;
    if (text !== undefined && !isSet(text)) return { name, advice: text };
  }
  return undefined;
}

const isText = (value: unknown): value is string => typeof value === 'string';
const haveText = (row: Columns, ...columns: readonly string[]): boolean =>
  columns.every((column) => isText(row[column]));

/** A list of objects with these two keys. */
const isListOf = (value: unknown, ...keys: readonly string[]): value is readonly Columns[] =>
  Array.isArray(value) && value.length > 0 && value.every((item) => isObject(item) && keys.every((key) => key in item));

const endsWithAnswer = (messages: unknown): boolean =>
  isListOf(messages, 'role') && messages.at(-1)?.['role'] === 'assistant';

const learn = 'write kind: sft';
const shape =
  '{"data_source": "own", "prompt": [{"role": "user", "content": …}], "reward_model": {"style": "rule", "ground_truth": …}}';
const asScored = `a run that samples responses needs what its scorer compares with; write each row as ${shape}`;

/** Columns with what is asked, and with what is answered, in the order in which they are looked for. */
const asking = ['prompt', 'question', 'problem', 'instruction', 'query', 'input'] as const;
const answering = [
  'response',
  'completion',
  'answer',
  'solution',
  'output',
  'target',
  'label',
  'ground_truth',
] as const;

const forms: readonly Form[] = [
  {
    name: 'a row of GSM8K (question, answer with "#### ")',
    fits: (row) => haveText(row, 'question', 'answer') && /#### -?[0-9.,]+/.test(String(row['answer'])),
    advice: (file, kind) =>
      kind === 'pairs'
        ? learnOrSample('data.format: gsm8k')
        : kind === 'sft'
          ? 'write data.format: gsm8k'
          : `write data.format: gsm8k, or make rows of verl's form: petrel data prepare gsm8k ${quoted(file)} --out rows.jsonl`,
  },
  {
    name: 'a row of MATH (problem, solution with \\boxed)',
    fits: (row) => haveText(row, 'problem', 'solution') && String(row['solution']).includes('\\boxed'),
    advice: (file, kind) =>
      kind === 'sft'
        ? 'write data.prompt_key: problem and data.response_key: solution'
        : kind === 'rl'
          ? `petrel data prepare math ${quoted(file)} --out rows.jsonl`
          : learnOrSample('data.prompt_key: problem'),
  },
  {
    name: 'a preference (chosen, rejected)',
    fits: (row) => ['chosen', 'rejected'].every((key) => isText(row[key]) || Array.isArray(row[key])),
    advice: (_, kind) => (kind === 'pairs' ? undefined : 'write kind: dpo, or kind: rm for a reward model'),
  },
  {
    name: 'a row of ShareGPT (conversations with from and value)',
    fits: (row) => isListOf(row['conversations'], 'from', 'value'),
    advice: (_, kind) =>
      `write each conversation as "messages": [{"role": "user", "content": …}, {"role": "assistant", "content": …}]${kind === 'sft' ? '' : `, and ${learn}`}`,
  },
  {
    name: 'a row for a scored run (prompt, reward_model)',
    fits: (row) => isObject(row['reward_model']) && row['prompt'] !== undefined,
    advice: (_, kind) => (kind === 'rl' ? 'write data.prompt_key: prompt' : 'write kind: rl'),
  },
  ...(['messages', 'conversations', 'conversation'] as const).map(
    (column): Form => ({
      name: `a chat (${column} with role and content)`,
      fits: (row) => isListOf(row[column], 'role', 'content'),
      advice: (_, kind, row) => {
        if (kind === 'sft') return `write data.prompt_key: ${column}`;
        if (kind === 'pairs' || endsWithAnswer(row[column]))
          return `${learn}${column === 'messages' ? '' : ` and data.prompt_key: ${column}`}`;
        return isObject(row['reward_model']) ? `write data.prompt_key: ${column}` : asScored;
      },
    }),
  ),
  {
    name: 'a row of Alpaca (instruction, input, output)',
    fits: (row) => haveText(row, 'instruction', 'output') && isText(row['input']) && row['input'] !== '',
    advice: (_, kind) =>
      `write each row with the instruction and its input in one prompt: {"prompt": "instruction\\n\\ninput", "response": "output"}${kind === 'sft' ? '' : `, and ${learn}`}`,
  },
  {
    name: 'an object that holds the rows as a list',
    fits: (row) =>
      Object.values(row).filter((value) => isListOf(value)).length === 1 &&
      Object.keys(row).every((key) => !known.has(key)),
    advice: (file, _, row) => {
      const column = Object.keys(row).find((key) => isListOf(row[key]));
      return `python3 -c "import json, sys; json.dump(json.load(open(sys.argv[1]))[sys.argv[2]], open('rows.json', 'w'))" ${quoted(file)} ${quoted(column ?? '')}`;
    },
  },
  {
    name: "a table by columns, as pandas' to_json writes it",
    fits: (row) =>
      Object.keys(row).length > 0 &&
      Object.values(row).every((value) => isObject(value) && Object.keys(value)[0] === '0'),
    advice: (file) =>
      `python3 -c "import pandas, sys; pandas.read_json(sys.argv[1]).to_json('rows.jsonl', orient='records', lines=True)" ${quoted(file)}`,
  },
  {
    name: 'a table by columns, with a list for each',
    fits: (row) => {
      const lists = Object.values(row);
      const length = Array.isArray(lists[0]) ? lists[0].length : 0;
      const isColumn = (list: unknown) =>
        Array.isArray(list) && list.length === length && list.every((item) => !isObject(item));
      return lists.length > 1 && length > 0 && lists.every(isColumn);
    },
    advice: (file) =>
      `python3 -c "import json, sys; t = json.load(open(sys.argv[1])); [print(json.dumps(dict(zip(t, row)))) for row in zip(*t.values())]" ${quoted(file)} > rows.jsonl`,
  },
  {
    name: 'a question with its answer',
    fits: (row) => pairOfColumns(row) !== undefined,
    advice: (_, kind, row) => {
      const [ask = '', answer = ''] = pairOfColumns(row) ?? [];
      if (kind === 'rl') return `${asScored}; to learn the answers: ${learn}${keysFor(ask, answer, ', ')}`;
      const keys = keysFor(ask, answer, '');
      if (kind === 'sft') return keys === '' ? undefined : `write ${keys}`;
      return `${learn}${keysFor(ask, answer, ', ')}`;
    },
  },
];

const known: ReadonlySet<string> = new Set([
  'messages',
  'conversations',
  'conversation',
  'prompt',
  'chosen',
  'rejected',
]);

const learnOrSample = (keys: string): string =>
  `these rows have no pair of responses; write kind: rl or kind: sft, and ${keys}`;

function pairOfColumns(row: Columns): readonly [string, string] | undefined {
  const isAsked = (column: string) => isText(row[column]) || isListOf(row[column], 'role');
  const ask = asking.find(isAsked);
  const answer = answering.find((column) => isText(row[column]));
  return ask === undefined || answer === undefined ? undefined : [ask, answer];
}

/** The recipe's lines for the columns that have other names there. */
function keysFor(ask: string, answer: string, before: string): string {
  const lines = [
    ...(ask === 'prompt' ? [] : [`data.prompt_key: ${ask}`]),
    ...(answer === 'response' ? [] : [`data.response_key: ${answer}`]),
  ];
  return lines.length === 0 ? '' : `${before}${lines.join(' and ')}`;
}
