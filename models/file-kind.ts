/**
 * What a file is, by its first bytes: names lie. A checkout without Git LFS leaves pointers named `.parquet`, and a
 * login page that curl saved is named as what was asked for.
 */
import { isUtf8 } from 'node:buffer';

/** Bytes that are enough to know a file's kind. */
export const headBytes = 64 * 1024;

/** Kinds whose rows can be read. */
export type RowsFormat = 'parquet' | 'json lines' | 'json array' | 'gzip';

export type FileKind =
  | { readonly type: 'rows'; readonly format: RowsFormat }
  | { readonly type: 'empty' }
  | {
      readonly type: 'other';
      readonly name: string;
      /** What to type, for a file of this name. */
      readonly advice: (file: string) => string;
      /** What it has in place of rows: weights that can be read as such, or PyTorch's, which cannot. */
      readonly holds?: 'weights' | 'PyTorch';
    };

type Other = Extract<FileKind, { readonly type: 'other' }>;

/** How a path is written for a shell. */
export const quoted = (path: string): string =>
  /^[\w./~+-]+$/.test(path) ? path : `'${path.replaceAll("'", String.raw`'\''`)}'`;

const stem = (file: string): string => quoted(file.replace(/\.[^./]*$/, ''));
const folderOf = (file: string): string => quoted(file.includes('/') ? file.replace(/\/[^/]*$/, '') || '/' : '.');
const python = (code: string) => (file: string) => `python3 -c "${code}" ${quoted(file)} > ${stem(file)}.rows.jsonl`;
const toParquet = (read: string) => (file: string) =>
  `python3 -c "import sys, pyarrow, pyarrow.parquet as pq; pq.write_table(${read}, sys.argv[2])" ${quoted(file)} ${stem(file)}.rows.parquet`;
const again = (what: string) => () => `get the file again: ${what}`;
const unpack = (command: string) => (file: string) => `${command} ${quoted(file)}`;
/** The names of these files need not end as the program expects, and what is in them is known by its first bytes. */
const decompress = (command: string) => (file: string) =>
  `${command} < ${quoted(file)} > ${quoted(`${file}.unpacked`)}`;

/** Kinds that begin with these bytes, `at` an offset. */
const signatures: readonly (Omit<Other, 'type'> & { readonly bytes: string; readonly at?: number })[] = [
  {
    bytes: 'version https://git-lfs.github.com/spec/',
    name: 'a pointer of Git LFS, not the file itself',
    advice: (file) => `git -C ${folderOf(file)} lfs pull`,
  },
  {
    bytes: '/annex/objects/',
    name: 'a pointer of git-annex, not the file itself',
    advice: (file) => `git -C ${folderOf(file)} annex get .`,
  },
  { bytes: 'PARE', name: 'an encrypted Parquet file', advice: () => 'write it again without encryption' },
  {
    bytes: 'ARROW1',
    name: 'an Arrow file (Feather)',
    advice: toParquet('pyarrow.ipc.open_file(sys.argv[1]).read_all()'),
  },
  {
    bytes: '\xff\xff\xff\xff',
    name: 'a stream of Arrow',
    advice: toParquet('pyarrow.ipc.open_stream(sys.argv[1]).read_all()'),
  },
  {
    bytes: 'FEA1',
    name: 'a Feather file of version 1',
    advice: toParquet("__import__('pyarrow.feather').feather.read_table(sys.argv[1])"),
  },
  { bytes: 'ORC', name: 'an ORC file', advice: toParquet("__import__('pyarrow.orc').orc.read_table(sys.argv[1])") },
  { bytes: 'Obj\x01', name: 'an Avro file', advice: () => 'write its rows as JSONL or Parquet' },
  {
    bytes: 'SQLite format 3\0',
    name: 'an SQLite database',
    advice: (file) => `sqlite3 -json ${quoted(file)} "select * from TABLE" > rows.json`,
  },
  {
    bytes: 'DUCK',
    at: 8,
    name: 'a DuckDB database',
    advice: (file) => `duckdb ${quoted(file)} "copy TABLE to 'rows.parquet'"`,
  },
  { bytes: '\x93NUMPY', name: 'an array of NumPy', advice: () => 'write its rows as JSONL or Parquet' },
  { bytes: '\x89HDF', name: 'an HDF5 file', advice: () => 'write its rows as JSONL or Parquet' },
  { bytes: '%PDF', name: 'a PDF', advice: () => 'write its rows as JSONL or Parquet' },
  { bytes: '\x7fELF', name: 'a program (ELF)', advice: again('this is a program, not data') },
  { bytes: '\x89PNG', name: 'a picture (PNG)', advice: again('this is a picture, not rows') },
  { bytes: '\xff\xd8\xff', name: 'a picture (JPEG)', advice: again('this is a picture, not rows') },
  { bytes: 'GGUF', name: 'a model in GGUF', advice: () => 'use the safetensors of the same model' },
  { bytes: '\x28\xb5\x2f\xfd', name: 'compressed by zstd', advice: decompress('zstd -dc') },
  { bytes: '\xfd7zXZ\0', name: 'compressed by xz', advice: decompress('xz -dc') },
  { bytes: 'BZh', name: 'compressed by bzip2', advice: decompress('bzip2 -dc') },
  { bytes: '\x04\x22\x4d\x18', name: 'compressed by lz4', advice: decompress('lz4 -dc') },
  { bytes: '7z\xbc\xaf\x27\x1c', name: 'a 7z archive', advice: unpack('7z x') },
  {
    bytes: 'PK\x03\x04',
    name: 'a ZIP archive (also .xlsx, .npz, and .bin or .pt of PyTorch)',
    holds: 'PyTorch',
    advice: unpack('unzip -l'),
  },
  { bytes: 'PK\x05\x06', name: 'an empty ZIP archive', advice: again('the archive holds nothing') },
  { bytes: 'ustar', at: 257, name: 'a tar archive', advice: unpack('tar xf') },
  {
    bytes: '\x80\x02',
    name: 'a pickle of Python',
    holds: 'PyTorch',
    advice: () => 'write its rows as JSONL or Parquet',
  },
  {
    bytes: '\x80\x03',
    name: 'a pickle of Python',
    holds: 'PyTorch',
    advice: () => 'write its rows as JSONL or Parquet',
  },
  {
    bytes: '\x80\x04',
    name: 'a pickle of Python',
    holds: 'PyTorch',
    advice: () => 'write its rows as JSONL or Parquet',
  },
  {
    bytes: '\x80\x05',
    name: 'a pickle of Python',
    holds: 'PyTorch',
    advice: () => 'write its rows as JSONL or Parquet',
  },
];

/** The kind of a file that begins with these bytes: `headBytes` of them, or all. */
export function fileKind(head: Uint8Array): FileKind {
  const bytes = Buffer.from(head.buffer, head.byteOffset, head.byteLength);
  if (bytes.length === 0) return { type: 'empty' };
  if (begins(bytes, 'PAR1')) return { type: 'rows', format: 'parquet' };
  if (begins(bytes, '\x1f\x8b')) return { type: 'rows', format: 'gzip' };
  const wide = wideText(bytes);
  if (wide !== undefined) return wide;
  if (isSafetensors(bytes))
    return {
      type: 'other',
      name: 'a file of safetensors: weights, not rows',
      advice: () => 'give its folder as model.path',
      holds: 'weights',
    };
  const known = signatures.find((one) => begins(bytes, one.bytes, one.at) && !isJsonText(bytes, one.at));
  if (known !== undefined) {
    const { name, advice, holds } = known;
    return { type: 'other', name, advice, ...(holds !== undefined && { holds }) };
  }
  return textKind(bytes);
}

const begins = (bytes: Buffer, signature: string, at = 0): boolean =>
  bytes.subarray(at, at + signature.length).equals(Buffer.from(signature, 'latin1'));

/** Rows of JSON may have anything at an offset. */
const isJsonText = (bytes: Buffer, at = 0): boolean => at > 0 && /^\s*[[{]/.test(bytes.toString('latin1', 0, 64));

/** A header of JSON behind its length in eight bytes; text has other bytes than zeros there. */
const isSafetensors = (bytes: Buffer): boolean => begins(bytes, '\0\0\0', 5) && begins(bytes, '{"', 8);

/** UTF-16 and UTF-32, with a byte order mark or with the zero bytes of ordinary letters. */
function wideText(bytes: Buffer): FileKind | undefined {
  const encodings: readonly (readonly [string, string, RegExp])[] = [
    ['UTF-32LE', '\xff\xfe\0\0', /^(?:[^\0]\0\0\0)+$/],
    ['UTF-32BE', '\0\0\xfe\xff', /^(?:\0\0\0[^\0])+$/],
    ['UTF-16LE', '\xff\xfe', /^(?:[^\0]\0)+$/],
    ['UTF-16BE', '\xfe\xff', /^(?:\0[^\0])+$/],
  ];
  const start = bytes.toString('latin1', 0, Math.min(16, bytes.length - (bytes.length % 4)));
  const found = encodings.find(([, mark, zeros]) => begins(bytes, mark) || zeros.test(start));
  if (found === undefined) return undefined;
  const [encoding] = found;
  const advice = (file: string) => `iconv -f ${encoding} -t UTF-8 ${quoted(file)} > ${stem(file)}.utf8.jsonl`;
  return { type: 'other', name: `text in ${encoding}, not UTF-8`, advice };
}

function textKind(bytes: Buffer): FileKind {
  const text = bytes.toString('utf8').replace(/^\ufeff/, '');
  const start = text.trimStart();
  if (start === '') return { type: 'empty' };
  if (/^<(?:!doctype html|html|head|body)\b/i.test(start) || /^<!--[\s\S]*<html/i.test(start))
    return {
      type: 'other',
      name: 'a page of HTML',
      advice: again('it is often a login page; set the token and ask for the file itself'),
    };
  if (/^<\?xml|^<[A-Za-z][\w:-]*[\s>]/.test(start))
    return { type: 'other', name: 'XML', advice: again('a store answers so to a request that it refuses') };
  if (text.includes('\r') && !text.includes('\n') && /\r\s*[[{]/.test(text))
    return {
      type: 'other',
      name: 'text whose lines end with CR alone',
      advice: (file) => String.raw`tr '\r' '\n' < ${quoted(file)} > ${stem(file)}.lines.jsonl`,
    };
  if (/^\0+$/.test(text))
    return {
      type: 'other',
      name: 'zero bytes: a file whose space was reserved and never written',
      advice: again('the download or the copy was cut'),
    };
  if (start.startsWith('\x1e'))
    return {
      type: 'other',
      name: 'a sequence of JSON texts with record separators',
      advice: (file) => String.raw`tr -d '\036' < ${quoted(file)} > ${stem(file)}.lines.jsonl`,
    };
  if (start.startsWith('[')) return { type: 'rows', format: 'json array' };
  if (start.startsWith('{')) return { type: 'rows', format: 'json lines' };
  if (isBinary(bytes))
    return {
      type: 'other',
      name: 'a binary file of a kind that is not known',
      advice: again('its first bytes are neither text nor Parquet; its start may be missing'),
    };
  return tableKind(start, bytes) ?? { type: 'rows', format: 'json lines' };
}

/** Control characters that no text has, in more than one byte of fifty. Rows with a broken letter are still rows. */
function isBinary(bytes: Buffer): boolean {
  const strange = bytes.reduce((count, byte) => count + Number(byte < 0x20 && !(byte >= 0x09 && byte <= 0x0d)), 0);
  return strange * 50 > bytes.length;
}

/** A table of text: a first line with separated names, and a second one with as many fields. */
function tableKind(text: string, bytes: Buffer): FileKind | undefined {
  if (text.includes('\0') || (bytes.length < headBytes && !isUtf8(bytes))) return undefined;
  const [names = '', ...rows] = text.split(/\r?\n|\r/).filter((line) => line !== '');
  const separator = names.includes('\t') ? '\t' : names.includes(',') ? ',' : names.includes(';') ? ';' : undefined;
  if (separator === undefined || (rows[0] !== undefined && !rows.slice(0, 9).some((row) => row.includes(separator))))
    return undefined;
  const delimiter = separator === '\t' ? String.raw`'\t'` : `'${separator}'`;
  const advice = python(
    `import csv, json, sys; csv.field_size_limit(2**31 - 1); [print(json.dumps(row)) for row in csv.DictReader(open(sys.argv[1], newline='', encoding='utf-8-sig'), delimiter=${delimiter})]`,
  );
  return { type: 'other', name: separator === '\t' ? 'a table of text (TSV)' : 'a table of text (CSV)', advice };
}
