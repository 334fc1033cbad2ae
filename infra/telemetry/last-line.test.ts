import { mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync, appendFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { lastLine } from './last-line.ts';

const folder = mkdtempSync(join(tmpdir(), 'petrel-last-line-'));
afterAll(() => rmSync(folder, { recursive: true }));
const path = join(folder, 'rows.jsonl');
const long = 'ä'.repeat(100_000);

describe('the last line of a file', () => {
  it.each([
    ['one line', 'a\n', 'a'],
    ['several lines', 'a\nb\nc\n', 'c'],
    ['a line longer than one piece', `a\n${long}\n`, long],
    ['an empty last line', 'a\n\n', ''],
    ['no line', '', undefined],
  ])('with %s is read', async (_, text, line) => {
    writeFileSync(path, text);
    expect(await lastLine(path)).toBe(line);
    expect(readFileSync(path, 'utf8')).toBe(text);
  });

  it.each([
    ['after whole lines', 'a\nb\n', 'b'],
    ['alone', '', undefined],
  ])('that was left unfinished %s is cut off', async (_, whole, line) => {
    writeFileSync(path, `${whole}{"step": 3, ${long}`);
    expect(await lastLine(path)).toBe(line);
    expect(readFileSync(path, 'utf8')).toBe(whole);
  });

  it('is undefined without a file', async () => {
    expect(await lastLine(join(folder, 'none'))).toBeUndefined();
  });

  it('is read although the file is larger than what Node reads as a whole', async () => {
    const bytes = 3 * 1024 ** 3; // a hole, which takes no room
    writeFileSync(path, 'first\n');
    truncateSync(path, bytes);
    appendFileSync(path, '\nlast\n');
    expect(await lastLine(path)).toBe('last');
    expect(statSync(path).size).toBe(bytes + 6);
  });
});
