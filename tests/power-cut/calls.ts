/** The calls that record.c recorded, in the order of their start. */

export type Request =
  | { readonly type: 'mkdir' | 'rmdir' | 'unlink'; readonly path: string }
  | { readonly type: 'link' | 'rename'; readonly from: string; readonly to: string }
  | { readonly type: 'create'; readonly path: string; readonly inode: string }
  | { readonly type: 'write'; readonly inode: string; readonly bytes: number }
  | { readonly type: 'sync'; readonly inode: string }
  | { readonly type: 'sync-folder'; readonly path: string };

/** A call that succeeded. `begin` and `end` are lines of the recording. A call whose process was killed has no end. */
export type Call = Request & { readonly begin: number; readonly end: number };

/** What the user had been told up to this line of the recording. */
export interface Mark {
  readonly line: number;
  readonly told: string;
}

export interface Recording {
  readonly lines: number;
  readonly calls: readonly Call[];
  readonly marks: readonly Mark[];
}

interface Begun {
  readonly words: readonly string[];
  readonly line: number;
}

/** Throws for a call that the model of the disk does not know. */
export function parseRecording(text: string): Recording {
  const begun = new Map<string, Begun>();
  const calls: Call[] = [];
  const marks: Mark[] = [];
  const lines = text.split('\n').slice(0, -1);
  lines.forEach((content, line) => {
    const [kind = '', id = '', ...words] = content.split('\t');
    if (kind === 'M') marks.push({ line, told: id });
    else if (kind === 'B') begun.set(id, { words, line });
    else {
      const call = begun.get(id);
      if (call === undefined) throw new Error(`call ${id} ended and had not begun`);
      begun.delete(id);
      const result = Number(words[0]);
      if (result >= 0) calls.push({ ...requestOf(call.words, String(words[0])), begin: call.line, end: line });
    }
  });
  for (const { words, line } of begun.values())
    if (words[0] !== 'open') calls.push({ ...requestOf(words, '0'), begin: line, end: Number.POSITIVE_INFINITY });
  return { lines: lines.length, calls: calls.sort((a, b) => a.begin - b.begin), marks };
}

function requestOf([name = '', first = '', second = '']: readonly string[], result: string): Request {
  switch (name) {
    case 'mkdir':
    case 'rmdir':
    case 'unlink':
      return { type: name, path: plain(first) };
    case 'link':
    case 'rename':
      return { type: name, from: plain(first), to: plain(second) };
    case 'open':
      if (!second.includes('create')) throw new Error(`${first} is opened to be changed in its place`);
      return { type: 'create', path: plain(first), inode: result };
    case 'write':
    case 'writev':
      return { type: 'write', inode: first, bytes: Number(result) };
    case 'sync':
      return { type: 'sync', inode: first };
    case 'sync-folder':
      return { type: 'sync-folder', path: plain(first) };
    default:
      throw new Error(`the disk model does not know ${name} ${first}`);
  }
}

/** The path without double slashes, and without a slash at the end. */
const plain = (path: string): string => path.replaceAll(/\/+/g, '/').replace(/\/$/, '');
