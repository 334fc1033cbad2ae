/** Writes a file of many rows in verl's layout as a stream, so that it is never in memory as a whole. */
import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { uniform } from '../model.ts';

const words =
  'the sum of apples that Anna bought and Ben sold is asked for how many are left when a quarter of them was eaten'.split(
    ' ',
  );

/** Every tenth row is about one and a half times as long as the others. */
const longEvery = 10;

/** `bytes`: size of a normal row. The same seed writes the same file. */
export async function writeRows(path: string, rows: number, bytes: number): Promise<void> {
  await pipeline(linesOf(rows, bytes), createWriteStream(path));
}

function* linesOf(rows: number, bytes: number): Generator<string> {
  const random = uniform(42);
  let lines = '';
  for (let i = 0; i < rows; i++) {
    lines += lineOf(i, i % longEvery === 0 ? 1.5 * bytes : bytes, random);
    if (lines.length < 1 << 20) continue;
    yield lines;
    lines = '';
  }
  yield lines;
}

function lineOf(i: number, bytes: number, random: () => number): string {
  const line = (content: string) =>
    `${JSON.stringify({
      data_source: 'bench',
      prompt: [{ role: 'user', content }],
      reward_model: { style: 'rule', ground_truth: String(i) },
      extra_info: { index: i },
    })}\n`;
  const room = Math.floor(bytes - line('').length);
  let content = `${i}:`;
  while (content.length < room) content += ` ${words[Math.floor(random() * words.length)]}`;
  return line(content.slice(0, room));
}
