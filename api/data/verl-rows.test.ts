import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { InvalidInputError } from '../../core/errors.ts';
import { packageRoot } from '../../infra/home.ts';
import { temporaryFolders } from '../../tests/temporary-folders.ts';
import { prepareRows } from './verl-rows.ts';

const fresh = temporaryFolders('petrel-verl-rows-');

async function file(name: string, text: string): Promise<string> {
  const path = join(await fresh(), name);
  await writeFile(path, text);
  return path;
}
const lines = (rows: readonly unknown[]) => rows.map((row) => `${JSON.stringify(row)}\n`).join('');

const ducks = { question: 'How many?', answer: 'First 2 * 665 = <<2*665=1330>>1,330.\n#### 1,330' };
const half = {
  problem: 'What is $1/2$?',
  level: 'Level 1',
  type: 'Algebra',
  solution: String.raw`It is $\boxed{0}$, no: $\boxed{\frac{1}{2}}$.`,
};

describe('rows of GSM8K', () => {
  it('are those of verl’s script', async () => {
    const path = await file('train.jsonl', lines([ducks, { ...ducks, answer: '#### -5' }]));
    const [first, second] = await prepareRows('gsm8k', [path], 'train');
    expect(first).toEqual({
      data_source: 'openai/gsm8k',
      prompt: [
        { role: 'user', content: 'How many? Let\'s think step by step and output the final answer after "####".' },
      ],
      ability: 'math',
      reward_model: { style: 'rule', ground_truth: '1330' },
      extra_info: { split: 'train', index: 0, answer: ducks.answer, question: ducks.question },
    });
    expect(second).toMatchObject({ reward_model: { ground_truth: '-5' }, extra_info: { index: 1 } });
  });

  it('are numbered over all files', async () => {
    const paths = [await file('a.jsonl', lines([ducks, ducks])), await file('b.jsonl', lines([ducks]))];
    const rows = await prepareRows('gsm8k', paths, 'test');
    expect(rows.map(({ extra_info: { split, index } }) => [split, index])).toEqual([
      ['test', 0],
      ['test', 1],
      ['test', 2],
    ]);
  });

  it('are refused without a number after ####, with file and line', async () => {
    const path = await file('train.jsonl', lines([ducks, ducks, { ...ducks, answer: 'it is 5' }]));
    const error: unknown = await prepareRows('gsm8k', [path], 'train').catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(InvalidInputError);
    expect(error).toMatchObject({ where: `${path}:3`, message: expect.stringContaining('row 3: answer') as string });
  });
});

describe('rows of MATH', () => {
  const row = {
    level: 'Level 1',
    type: 'Algebra',
    data_source: 'DigitalLearningGmbH/MATH-lighteval',
    prompt: [
      {
        role: 'user',
        content: String.raw`What is $1/2$? Let's think step by step and output the final answer within \boxed{}.`,
      },
    ],
    ability: 'math',
    reward_model: { style: 'rule', ground_truth: String.raw`\frac{1}{2}` },
    extra_info: { split: 'test', index: 0 },
  };

  it('are those of verl’s script: the last box, with level and type', async () => {
    expect(await prepareRows('math', [await file('test.jsonl', lines([half]))], 'test')).toEqual([row]);
  });

  it('come from a folder of JSON files by their names, numbers by value, or from one list', async () => {
    const folder = await fresh();
    for (const [name, answer] of [
      ['algebra/10.json', '10'],
      ['algebra/9.json', '9'],
      ['geometry/1.json', 'g'],
      ['README.md', '?'],
    ] as const) {
      await mkdir(join(folder, name, '..'), { recursive: true });
      await writeFile(
        join(folder, name),
        JSON.stringify({ ...half, solution: String.raw`\boxed{${answer}}` }, null, 2),
      );
    }
    const answers = (await prepareRows('math', [folder], 'train')).map(
      ({ reward_model: { ground_truth } }) => ground_truth,
    );
    expect(answers).toEqual(['9', '10', 'g']);
    expect(await prepareRows('math', [await file('all.json', JSON.stringify([half]))], 'test')).toEqual([row]);
    expect(await prepareRows('math', [await file('lines.json', lines([half, half]))], 'test')).toHaveLength(2);
  });

  it.each<readonly [string, unknown, RegExp]>([
    ['without a box', { ...half, solution: 'It is 5.' }, /row 1: solution: expected \\boxed/],
    ['with an empty box', { ...half, solution: String.raw`\boxed{ }` }, /row 1: solution/],
    ['with an open box', { ...half, solution: String.raw`\boxed{5` }, /row 1: solution/],
    ['without a problem', { solution: String.raw`\boxed{5}` }, /row 1: problem: expected text/],
    ['that is no object', 7, /row 1: expected an object with problem and solution/],
  ])('are refused %s', async (_, bad, message) => {
    await expect(prepareRows('math', [await file('rows.jsonl', lines([bad]))], 'train')).rejects.toThrow(message);
  });
});

it('files without rows, of another kind and missing ones are refused', async () => {
  await expect(prepareRows('math', [await fresh()], 'train')).rejects.toThrow(/there are no rows/);
  await expect(prepareRows('math', [await file('rows.csv', 'a,b')], 'train')).rejects.toThrow(
    /expected rows of JSON or Parquet; this is a table/,
  );
  await expect(prepareRows('gsm8k', ['/nowhere/rows.jsonl'], 'train')).rejects.toThrow(/there is no such file/);
  const parquet = join(packageRoot(), 'models/dataset/fixtures/verl-snappy.parquet');
  await expect(prepareRows('gsm8k', [parquet], 'train')).rejects.toThrow(/verl-snappy\.parquet, row 1: question/);
});
