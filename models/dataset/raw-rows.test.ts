import { execFile, execFileSync } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { InvalidInputError } from '../../core/errors.ts';
import { rawRows } from './raw-rows.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'petrel-rows-'));
});
afterEach(async () => rm(folder, { recursive: true }));

async function put(name: string, content: string | Uint8Array): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, content);
  return path;
}

async function read(path: string): Promise<unknown[]> {
  const rows: unknown[] = [];
  for await (const { plain } of await rawRows(path)) rows.push(plain);
  return rows;
}

const refusal = (path: string): Promise<InvalidInputError> =>
  read(path).then(
    (rows) => expect.fail(`read ${rows.length} rows`),
    (error: unknown) => {
      expect(error).toBeInstanceOf(InvalidInputError);
      return error as InvalidInputError;
    },
  );

const rows = [{ a: 1, text: 'x, ] } " \\ [ {' }, { a: [1, [2]], b: { c: 'ä' } }, { a: null }];
const lines = rows.map((row) => JSON.stringify(row)).join('\n');
const latin1 = (text: string) => Buffer.from(text, 'latin1');

describe('files of rows', () => {
  it.each<[string, string, string | Uint8Array]>([
    ['a JSON array', 'rows.json', JSON.stringify(rows)],
    ['a JSON array over many lines', 'rows.json', JSON.stringify(rows, null, 2)],
    ['a JSON array after blanks and a byte order mark', 'rows.json', `\ufeff \n\n${JSON.stringify(rows)} \n`],
    ['a JSON array named as JSONL', 'rows.jsonl', JSON.stringify(rows)],
    ['objects over many lines', 'rows.json', rows.map((row) => JSON.stringify(row, null, 2)).join('\n')],
    ['JSONL named .json', 'rows.json', lines],
    ['JSONL with CRLF', 'rows.jsonl', lines.replaceAll('\n', '\r\n')],
    ['JSONL with a byte order mark', 'rows.jsonl', `\ufeff${lines}\n`],
    ['JSONL in gzip', 'rows.jsonl.gz', gzipSync(lines)],
    ['JSONL in gzip without a name of its own', 'rows.jsonl', gzipSync(lines)],
    [
      'gzip of two members',
      'rows.jsonl.gz',
      Buffer.concat([gzipSync(`${lines.split('\n')[0]}\n`), gzipSync(lines.split('\n').slice(1).join('\n'))]),
    ],
    ['a JSON array in gzip', 'rows.json.gz', gzipSync(JSON.stringify(rows))],
    ['rows without an extension', 'rows', lines],
  ])('are read: %s', async (_, name, content) => {
    expect(await read(await put(name, content))).toEqual(rows);
  });

  it('are read: Parquet under any name', async () => {
    const path = join(folder, 'rows.jsonl');
    await copyFile(join(import.meta.dirname, 'fixtures/verl-snappy.parquet'), path);
    expect(await read(path)).toHaveLength(40);
  });

  it('are cut into rows wherever the pieces of a JSON array end', async () => {
    const many = Array.from({ length: 9_000 }, (_, i) => ({ i, text: 'ä"\\'.repeat(i % 40) }));
    expect(await read(await put('many.json', JSON.stringify(many)))).toEqual(many);
  });

  it.each<[string, string, string | Uint8Array, RegExp, RegExp | undefined]>([
    [
      'a pointer of Git LFS',
      'rows.parquet',
      `version https://git-lfs.github.com/spec/v1\noid sha256:${'0'.repeat(64)}\nsize 9\n`,
      /pointer of Git LFS/,
      /^git -C \/\S+ lfs pull$/,
    ],
    [
      'a page of HTML',
      'rows.jsonl',
      '\n<!DOCTYPE html>\n<html><body>Log in</body></html>',
      /a page of HTML/,
      /login page/,
    ],
    ['XML', 'rows.parquet', '<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>', /this is XML/, undefined],
    ['a table', 'rows.jsonl', 'question,answer\n1+1,2\n', /\(CSV\)/, /^python3 -c/],
    ['a table with tabs', 'rows.json', 'question\tanswer\n1+1\t2\n', /\(TSV\)/, /^python3 -c/],
    ['zstd', 'rows.jsonl.zst', latin1('\x28\xb5\x2f\xfd....'), /compressed by zstd/, /^zstd -dc < /],
    ['xz', 'rows.jsonl.xz', latin1('\xfd7zXZ\0..'), /compressed by xz/, /^xz -dc < /],
    ['bzip2', 'rows.jsonl.bz2', 'BZh91AY', /compressed by bzip2/, /^bzip2 -dc < /],
    ['a ZIP archive', 'rows.jsonl', 'PK\x03\x04....', /ZIP archive/, /^unzip -l /],
    ['an Arrow file', 'rows.parquet', 'ARROW1\0\0....', /an Arrow file/, /pyarrow/],
    [
      'a stream of Arrow',
      'data-00000-of-00001.arrow',
      latin1('\xff\xff\xff\xff\x10\0\0\0'),
      /a stream of Arrow/,
      /open_stream/,
    ],
    ['ORC', 'rows.parquet', 'ORC\x11....', /an ORC file/, /pyarrow/],
    ['SQLite', 'rows.jsonl', 'SQLite format 3\0....', /SQLite database/, /^sqlite3 -json/],
    ['a pickle', 'rows.jsonl', latin1('\x80\x04\x95\0\0'), /pickle/, undefined],
    ['an array of NumPy', 'rows.npy', latin1('\x93NUMPY\x01\0'), /NumPy/, undefined],
    ['a PDF', 'rows.jsonl', '%PDF-1.7', /a PDF/, undefined],
    ['weights', 'rows.jsonl', latin1('\x40\0\0\0\0\0\0\0{"a":{"dtype":"F32"}}'), /safetensors/, undefined],
    [
      'UTF-16 with a mark',
      'rows.jsonl',
      Buffer.from(`\ufeff${lines}`, 'utf16le'),
      /text in UTF-16LE/,
      /^iconv -f UTF-16LE -t UTF-8 /,
    ],
    ['text whose ninth byte begins an object', 'rows.jsonl', '// rows\n{"a":1}\n', /row 1/, undefined],
    ['zero bytes', 'rows.jsonl', '\0'.repeat(100), /zero bytes/, /get the file again/],
    ['record separators', 'rows.jsonl', '\x1e{"a":1,"b":2}\n\x1e{"a":1,"b":2}\n', /record separators/, /^tr -d /],
    ['an empty ZIP archive', 'rows.jsonl', `PK\x05\x06${'\0'.repeat(18)}`, /an empty ZIP archive/, undefined],
    ['a table inside gzip', 'rows.csv.gz', gzipSync('a,b\n1,2\n3,4\n'), /unpacked, this is a table/, /^gunzip -c /],
    [
      'a page of HTML inside gzip',
      'rows.jsonl.gz',
      gzipSync('<!doctype html>'),
      /unpacked, this is a page/,
      /^get the /,
    ],
    ['UTF-16 without a mark', 'rows.jsonl', Buffer.from(lines, 'utf16le'), /text in UTF-16LE/, /^iconv/],
    ['UTF-16BE without a mark', 'rows.jsonl', Buffer.from(lines, 'utf16le').swap16(), /text in UTF-16BE/, /^iconv/],
    [
      'UTF-32',
      'rows.jsonl',
      Buffer.from([...'\ufeff{"a":1}'].flatMap((one) => [one.charCodeAt(0) & 255, one.charCodeAt(0) >> 8, 0, 0])),
      /text in UTF-32LE/,
      /^iconv/,
    ],
    ['CR line ends', 'rows.jsonl', lines.replaceAll('\n', '\r'), /end with CR alone/, /^tr /],
    ['nothing', 'rows.parquet', '', /the file is empty/, undefined],
    ['blanks', 'rows.jsonl', ' \n\n', /the file is empty/, undefined],
    ['a table in gzip', 'rows.jsonl.gz', gzipSync('a,b\n1,2\n'), /unpacked, this is a table of text/, undefined],
    ['gzip that breaks off', 'rows.jsonl.gz', gzipSync(lines).subarray(0, 40), /its gzip is damaged/, undefined],
    [
      'an array that breaks off',
      'rows.json',
      '[{"a":1}, {"a":',
      /row 2: the JSON array ends before its closing bracket/,
      undefined,
    ],
    [
      'text behind an array',
      'rows.json',
      '[{"a":1}] [{"a":2}]',
      /row 2: there is text behind the JSON array/,
      undefined,
    ],
    ['an item that is not JSON', 'rows.json', '[{"a":1}, {"a":]]', /row 2: expected a JSON object/, undefined],
    [
      'the print of a dict of Python',
      'rows.jsonl',
      `{"a":1}\n{'a': 1}`,
      /row 2: expected a JSON object on one line, found the print of a Python dict/,
      /json.dumps/,
    ],
    [
      'a comment before the rows',
      'rows.jsonl',
      '// rows\n{"a":1}',
      /row 1: .*found a comment/,
      /leave the comments out/,
    ],
    ['a comment of a shell', 'rows.jsonl', '{"a":1}\n# more\n', /row 2: .*found a comment/, /leave the comments out/],
    ['a comment among the items', 'rows.json', '[{"a":1},\n // two\n {"a":2}]', /row 2: .*found a comment/, /leave/],
    ['YAML', 'rows.yaml', '- prompt: a\n- prompt: b\n', /row 1: .*found YAML/, /yaml.safe_load.*rows.yaml/],
    ['an object of YAML', 'rows.jsonl', 'prompt: a\nanswer: b\n', /row 1: .*found YAML/, /yaml.safe_load/],
    ['JSON5', 'rows.json5', "[{prompt: 'a'}]", /row 1: .*found a key without quotes/, /double quotes/],
    ['JSON5 by lines', 'rows.jsonl', "{prompt: 'a'}", /row 1: .*found a key without quotes/, /double quotes/],
    [
      'rows that a carriage return parts',
      'rows.jsonl',
      '{"a":1}\r{"a":2}\n{"a":3}',
      /row 1: .*carriage return/,
      /^tr /,
    ],
    ['rows that Unicode parts', 'rows.jsonl', '{"a":1}\n{"a":2}\u2028{"a":3}', /row 2: .*separator of Unicode/, /own/],
    ['two rows on a line', 'rows.jsonl', '{"a":"}{"}{"a":2}', /row 1: .*found more than one row/, /line of its own/],
    ['a cut row with braces in a text', 'rows.jsonl', '{"a":"\\\\frac{1}{2}"', /row 1: (?!.*more than one)/, undefined],
    ['a program', 'rows.jsonl', '\x7fELF\x02\x01\x01\0\0\0\0', /this is a program \(ELF\)/, /get the file again/],
    ['a picture', 'rows.parquet', latin1('\x89PNG\r\n\x1a\n\0\0\0\rIHDR'), /a picture \(PNG\)/, /get the file again/],
    [
      'bytes',
      'rows.parquet',
      latin1('\x15\x04\x15\x80\x08\x15\x10L\x15\0\0\0'.repeat(9)),
      /a binary file/,
      /start may/,
    ],
    ['a cut Parquet file', 'rows.parquet', `PAR1${'x'.repeat(99)}`, /the end of the Parquet file is missing/, /again/],
    ['four letters of Parquet', 'rows.parquet', 'PAR1', /the end of the Parquet file is missing/, /was cut/],
    ['a comma too many', 'rows.jsonl', '{"a":1,}', /row 1: .*found a comma before the closing/, /leave the comma out/],
    ['a break within a text', 'rows.json', '[{"a":"x\n# y"}]', /row 1: .*Bad control character/, undefined],
    ['text that begins with a number', 'rows.jsonl', '2 + 3 = 5', /row 1: .*found plain text/, /"prompt": \[/],
    ['plain text', 'rows.txt', '{"a":1}\nWhat is 2 + 3?', /row 2: .*found plain text: "What is 2/, /"prompt": \[/],
  ])('are refused and named: %s', async (_, name, content, message, hint) => {
    const path = await put(name, content);
    const error = await refusal(path);
    expect(error.message).toMatch(message);
    expect(error.message).toContain(path);
    if (hint !== undefined) expect(error.hint).toMatch(hint);
  });

  it('at the end of a broken link are missing there', async () => {
    const path = join(folder, 'rows.jsonl');
    await symlink(join(folder, 'gone.jsonl'), path);
    expect((await refusal(path)).message).toBe(
      `${path}: the link leads to ${join(folder, 'gone.jsonl')}, and there is no such file`,
    );
  });

  it('are made of a table by the command that the hint says', async () => {
    const path = await put("it's rows.csv", '\ufeffquestion,answer\n"a, ""b""",2\nc,3\n');
    const { hint } = await refusal(path);
    await promisify(execFile)('bash', ['-c', hint ?? '']);
    expect(await read(join(folder, "it's rows.rows.jsonl"))).toEqual([
      { question: 'a, "b"', answer: '2' },
      { question: 'c', answer: '3' },
    ]);
  });

  it.each(['rows.jsonl', 'rows.jsonl.gz', 'rows.json'])('name the row that is not UTF-8 (%s)', async (name) => {
    const good = Array.from({ length: 5_000 }, (_, i) => `{"a":"${'ä'.repeat(i % 30)}"}`);
    const bytes = Buffer.concat([
      Buffer.from(`${good.join('\n')}\n{"a":"`),
      Buffer.from([0xe4]),
      Buffer.from('"}\n{"a":1}'),
    ]);
    const array = Buffer.concat([
      Buffer.from('['),
      Buffer.from(bytes.toString('latin1').replaceAll('\n', ','), 'latin1'),
      Buffer.from(']'),
    ]);
    const content = name.endsWith('.gz') ? gzipSync(bytes) : name.endsWith('.json') ? array : bytes;
    const error = await refusal(await put(name, content));
    expect(error.message).toMatch(/row 5001: the row is not UTF-8/);
    expect(error.where).toMatch(/:5001$/);
  });

  it.each([
    ['arrays', '['.repeat(5_000) + ']'.repeat(5_000)],
    ['objects', `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`],
  ])('name the row that is nested too deep: %s', async (_, deep) => {
    const content = `{"a":"${'['.repeat(5_000)}"}\n{"a":${deep}}\n`;
    expect((await refusal(await put('deep.jsonl', content))).message).toMatch(/row 2: .*nested at most 1000 deep/);
    const array = `[${content.trim().replace('\n', ',')}]`;
    expect((await refusal(await put('deep.json', array))).message).toMatch(/row 2: .*nested at most 1000 deep/);
  });

  it('are files: folders, named pipes, sockets and devices are refused at once', async () => {
    await mkdir(join(folder, 'folder.jsonl'));
    execFileSync('mkfifo', [join(folder, 'pipe.jsonl')]);
    const socket = createServer().listen(join(folder, 'socket.jsonl'));
    await new Promise((resolve) => socket.once('listening', resolve));
    try {
      for (const [name, found] of [
        [join(folder, 'folder.jsonl'), 'a folder'],
        [join(folder, 'pipe.jsonl'), 'a named pipe'],
        [join(folder, 'socket.jsonl'), 'a socket'],
        ['/dev/zero', 'a device'],
      ] as const)
        expect((await refusal(name)).message).toMatch(new RegExp(`expected a file, found ${found}`));
    } finally {
      socket.close();
    }
  });

  it('may be larger than the memory: rows of a JSON array come before its end is read', async () => {
    const path = await put('open.json', '[{"a":1},{"a":2}');
    await truncate(path, 100 * 1024 * 1024); // zeros behind the second row
    const seen: unknown[] = [];
    for await (const { plain } of await rawRows(path)) {
      seen.push(plain);
      break;
    }
    expect(seen).toEqual([{ a: 1 }]);
  });
});
