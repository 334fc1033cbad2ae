import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Store } from '../../core/ports/store.ts';
import { keys } from '../../core/records/keys.ts';
import type { LogLine } from '../../core/wire/messages.ts';
import { openStore } from '../../infra/store/open.ts';
import { LogReader } from './log-lines.ts';

let folder: string;
let store: Store;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'petrel-log-'));
  store = await openStore(folder);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const line = (text: string): LogLine => ({
  v: 1,
  at: `2026-01-01T00:00:0${text.length % 10}.000Z`,
  level: 'info',
  source: 'x',
  text,
});
const write = (chunk: string, ...lines: LogLine[]) =>
  store.put(keys.log('toy', chunk), new TextEncoder().encode(lines.map((one) => `${JSON.stringify(one)}\n`).join('')));
const texts = (lines: readonly LogLine[]) => lines.map(({ text }) => text);

describe('a reader of log lines', () => {
  it('gives a line once that comes live first and is stored later', async () => {
    const reader = new LogReader(store, 'toy');
    expect(reader.live(line('a'))).toBeDefined();
    await write('1', line('a'), line('bb'));
    expect(texts(await reader.more())).toEqual(['bb']);
  });

  it('gives a line once that is stored first and comes live later', async () => {
    await write('1', line('a'));
    const reader = new LogReader(store, 'toy');
    expect(texts(await reader.newest(10))).toEqual(['a']);
    expect(reader.live(line('a'))).toBeUndefined();
  });

  it('gives a line twice that was said twice', async () => {
    await write('1', line('a'), line('a'));
    const reader = new LogReader(store, 'toy');
    expect(texts(await reader.newest(10))).toEqual(['a', 'a']);
    expect([reader.live(line('a')), reader.live(line('a'))]).toEqual([undefined, undefined]);
    expect(reader.live(line('a'))).toBeDefined();
  });

  it('reads no more chunks than it needs, and none twice', async () => {
    await write('1', line('a'));
    await write('2', line('bb'), line('ccc'));
    const reader = new LogReader(store, 'toy');
    expect(texts(await reader.newest(1))).toEqual(['ccc']);
    await write('0-of-another-writer', line('dddd'));
    expect(texts(await reader.more())).toEqual(['dddd']);
    expect(await reader.more()).toEqual([]);
  });
});
