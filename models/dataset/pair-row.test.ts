import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { readRows, verlColumns } from './rows.ts';
import type { Row } from './rows.ts';

const folder = mkdtempSync(join(tmpdir(), 'petrel-pairs-'));
afterAll(() => rmSync(folder, { recursive: true }));

async function rowOf(row: unknown, columns = {}): Promise<Partial<Row>> {
  const path = join(folder, 'pairs.jsonl');
  writeFileSync(path, `${JSON.stringify(row)}\n`);
  for await (const { prompt, response, rejected } of readRows([path], { kind: 'pairs', ...verlColumns, ...columns }))
    return { prompt, ...(response !== undefined && { response }), ...(rejected !== undefined && { rejected }) };
  throw new Error('no row');
}

const user = { role: 'user', content: '2+2?' };
const four = { role: 'assistant', content: '4' };
const five = { role: 'assistant', content: '5' };

describe('a row of a preference dataset', () => {
  it.each([
    ['texts', { prompt: '2+2=', chosen: '4', rejected: '5' }, { prompt: '2+2=', response: '4', rejected: '5' }],
    [
      'messages after a prompt',
      { prompt: [user], chosen: [four], rejected: [five] },
      { prompt: [user], response: four, rejected: five },
    ],
    [
      'a prompt of messages with responses of text',
      { prompt: [user], chosen: '4', rejected: '5' },
      { prompt: [user], response: '4', rejected: '5' },
    ],
    [
      'whole conversations without a prompt',
      { chosen: [user, four], rejected: [user, five] },
      { prompt: [user], response: four, rejected: five },
    ],
    [
      'whole conversations beside their prompt as text (UltraFeedback)',
      { prompt: '2+2?', chosen: [user, four], rejected: [user, five] },
      { prompt: [user], response: four, rejected: five },
    ],
    [
      'whole conversations beside their prompt as messages',
      { prompt: [user], chosen: [user, four], rejected: [user, five] },
      { prompt: [user], response: four, rejected: five },
    ],
  ])('is read from %s', async (_, row, expected) => {
    expect(await rowOf(row)).toEqual(expected);
  });

  it('is read from columns that the recipe names', async () => {
    const row = { question: '2+2=', good: '4', bad: '5' };
    expect(await rowOf(row, { promptKey: 'question', chosenKey: 'good', rejectedKey: 'bad' })).toEqual({
      prompt: '2+2=',
      response: '4',
      rejected: '5',
    });
  });

  it.each([
    [
      'lacks a response',
      { prompt: '2+2=', chosen: '4' },
      /row 1: rejected: expected text in chosen and rejected, or chat messages in both, found nothing/,
    ],
    [
      'has text and messages',
      { prompt: [user], chosen: [four], rejected: '5' },
      /rejected: expected text in chosen and rejected/,
    ],
    ['has no prompt', { chosen: '2+2=4', rejected: '2+2=5' }, /row 1: prompt: expected the prompt/],
    ['has no prompt before its messages', { chosen: [four], rejected: [five] }, /expected the prompt/],
    [
      'compares two conversations',
      { chosen: [user, four], rejected: [{ role: 'user', content: '2+3?' }, five] },
      /rejected: expected the messages of chosen but for the last one/,
    ],
    ['ends with a user', { prompt: [user], chosen: [user], rejected: [user] }, /a last message of the assistant/],
  ])('is refused when it %s', async (_, row, message) => {
    await expect(rowOf(row)).rejects.toThrow(message);
  });
});
