import { expect, it } from 'vitest';
import { gsm8kInstruction, gsm8kRow } from './gsm8k.ts';

const options = {
  kind: 'rl',
  instruction: gsm8kInstruction,
  asText: false,
  promptKey: 'prompt',
  responseKey: 'response',
  rewardFnKey: 'data_source',
} as const;
const raw = (plain: unknown) => ({ file: 'rows.jsonl', number: 3, exact: plain, plain });
const row = { question: 'How many?', answer: 'First 2 * 665 = <<2*665=1330>>1,330.\n#### 1,330' };

it('makes the row that verl prepares of it', () => {
  const prompt = `How many? ${gsm8kInstruction}`;
  const verl = {
    prompt: [{ role: 'user', content: prompt }],
    data_source: 'openai/gsm8k',
    reward_model: { style: 'rule', ground_truth: '1330' },
    extra_info: { index: 2, ...row },
  };
  expect(gsm8kRow(raw(row), options).plain).toEqual(verl);
  expect(gsm8kRow(raw(row), { ...options, asText: true }).plain).toEqual({ ...verl, prompt });
  expect(gsm8kRow(raw(row), { ...options, kind: 'sft', instruction: '' }).plain).toEqual({
    ...verl,
    prompt: [{ role: 'user', content: 'How many?' }],
    response: row.answer,
  });
});

it.each([
  [{ ...row, answer: '1330' }, 'rows.jsonl, row 3: answer: expected "#### " and a number'],
  [{ prompt: 'x' }, 'rows.jsonl, row 3: question: expected text'],
  ['text', 'rows.jsonl, row 3: expected an object with question and answer'],
])('refuses %j', (plain, words) => {
  expect(() => gsm8kRow(raw(plain), options)).toThrow(words);
});
