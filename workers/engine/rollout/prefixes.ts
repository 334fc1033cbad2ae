/**
 * Reads a job's journal: the tokens from which each sample may continue. Tokens are accepted only if hashes link them
 * to the sample's first token. When workers contradict each other, only a worker that wrote all of its tokens itself is
 * accepted, and only if no other such worker contradicts it.
 */
import { at } from '../../../core/at.ts';
import { journalMessage } from '../../../core/wire/journal.ts';
import type { JournalMessage, JournalSegment } from '../../../core/wire/journal.ts';
import { bytesPerToken, decodeTokens, Lineage } from '../generation/lineage.ts';
import type { JobIdentity, TokenRun } from '../generation/lineage.ts';

/** The job that the journal must belong to. */
export interface ExpectedSamples {
  readonly samples: readonly { readonly draw: number; readonly sample: number }[];
  readonly identity: JobIdentity;
  readonly vocab: number;
  readonly maxNewTokens: number;
  readonly stopTokens: Int32Array;
}

/** Why an entry was rejected. */
export type Doubt =
  | 'unreadable'
  | 'of other arithmetic'
  | 'damaged'
  | 'impossible'
  | 'without what comes before'
  | 'forked';

export interface Prefixes {
  of(draw: number, sample: number): TokenRun | undefined;
  /** How often each doubt occurred, in messages, segments, or forked samples. */
  readonly dropped: ReadonlyMap<Doubt, number>;
}

/** A segment with its bytes and its writer. */
interface Piece extends Omit<JournalSegment, 'tokens'> {
  readonly incarnation: string;
  readonly bytes: Buffer;
}

/** A sample up to the end of a piece, linked to its first token by valid hashes. */
interface Reached {
  readonly offset: number;
  readonly lineage: Lineage;
  readonly hash: string;
  readonly bytes: Buffer;
  readonly from: Reached | undefined;
}

export function readPrefixes(texts: readonly string[], expected: ExpectedSamples): Prefixes {
  const dropped = new Map<Doubt, number>();
  const doubt = (why: Doubt) => void dropped.set(why, (dropped.get(why) ?? 0) + 1);
  const pieces = new Map<string, Piece[]>();
  for (const piece of piecesOf(texts, expected, doubt)) {
    const name = nameOf(piece.draw, piece.sample);
    pieces.set(name, [...(pieces.get(name) ?? []), piece]);
  }
  const prefixes = new Map<string, TokenRun>();
  for (const [name, ofSample] of pieces) {
    const run = lineageOf(ofSample, expected, doubt);
    if (run !== undefined) prefixes.set(name, run);
  }
  return { of: (draw, sample) => prefixes.get(nameOf(draw, sample)), dropped };
}

const nameOf = (draw: number, sample: number) => `${draw} ${sample}`;

function piecesOf(texts: readonly string[], expected: ExpectedSamples, doubt: (why: Doubt) => void): Piece[] {
  const names = new Set(expected.samples.map(({ draw, sample }) => nameOf(draw, sample)));
  const isKnown = ({ draw, sample }: Piece) => names.has(nameOf(draw, sample));
  return texts.flatMap((text) => {
    const message = parse(text);
    if (message === undefined || !isOfJob(message, expected.identity)) {
      doubt('unreadable');
      return [];
    }
    if (message.arithmetic !== expected.identity.arithmetic) {
      doubt('of other arithmetic');
      return [];
    }
    const pieces = message.segments.map(({ tokens, ...segment }) => ({
      ...segment,
      incarnation: message.incarnation,
      bytes: Buffer.from(tokens, 'base64'),
    }));
    return pieces.filter((piece) => (isKnown(piece) && isPossible(piece, expected)) || doubt('impossible'));
  });
}

function parse(text: string): JournalMessage | undefined {
  try {
    return journalMessage.parse(JSON.parse(text));
  } catch {
    return undefined; // counted by the caller
  }
}

function isOfJob({ runId, jobId, weights }: JournalMessage, identity: JobIdentity): boolean {
  return runId === identity.runId && jobId === identity.jobId && weights === identity.weights;
}

/** Log-probs are at most 0, up to the rounding of the log-sum-exp. */
const rounding = 1e-5;

function isPossible({ offset, bytes }: Piece, { vocab, maxNewTokens, stopTokens }: ExpectedSamples): boolean {
  if (bytes.length === 0 || bytes.length % bytesPerToken !== 0) return false;
  const { tokens, logProbs, samplingLogProbs } = decodeTokens(bytes);
  return (
    offset + tokens.length <= maxNewTokens &&
    tokens.every(
      (token, i) => token >= 0 && token < vocab && (i === tokens.length - 1 || !stopTokens.includes(token)),
    ) &&
    [...logProbs, ...samplingLogProbs].every((logProb) => Number.isFinite(logProb) && logProb <= rounding)
  );
}

/** The one accepted lineage of a sample. */
function lineageOf(
  pieces: readonly Piece[],
  { identity, stopTokens }: ExpectedSamples,
  doubt: (why: Doubt) => void,
): TokenRun | undefined {
  const { draw, sample } = at(pieces, 0);
  const root = Lineage.of(identity, draw, sample);
  let end = onlyEnd(reach(pieces, root, doubt), root);
  if (end === 'forked') {
    const writers = [...new Set(pieces.map(({ incarnation }) => incarnation))];
    const own = writers.map((writer) =>
      reach(
        pieces.filter(({ incarnation }) => incarnation === writer),
        root,
      ),
    );
    const complete = own.filter((reached) => onlyEnd(reached, root) !== 'forked');
    end = onlyEnd(complete.flat(), root);
  }
  if (end === 'forked') doubt('forked');
  if (end === 'forked' || end === undefined) return undefined;
  const run = decodeTokens(bytesOf(end));
  const stop = run.tokens.findIndex((token) => stopTokens.includes(token));
  if (stop === -1 || stop === run.tokens.length - 1) return run;
  doubt('impossible'); // it continues after its end
  return undefined;
}

/**
 * All pieces that are linked to the root, by ascending length. Equal tokens are one piece, whatever their writer and
 * division.
 */
function reach(pieces: readonly Piece[], root: Lineage, doubt: (why: Doubt) => void = () => {}): Reached[] {
  const start: Reached = { offset: 0, lineage: root, hash: root.value, bytes: Buffer.alloc(0), from: undefined };
  const reached = new Map([[`0 ${start.hash}`, start]]);
  // A piece only follows shorter ones. So in this order its predecessor is known, or never will be.
  for (const piece of [...pieces].sort((a, b) => a.offset - b.offset)) {
    const from = reached.get(`${piece.offset} ${piece.before}`);
    if (from === undefined) {
      doubt('without what comes before');
      continue;
    }
    const lineage = from.lineage.copy().append(piece.bytes);
    const hash = lineage.value;
    const offset = piece.offset + piece.bytes.length / bytesPerToken;
    if (hash !== piece.after) doubt('damaged');
    else if (!reached.has(`${offset} ${hash}`))
      reached.set(`${offset} ${hash}`, { offset, lineage, hash, bytes: piece.bytes, from });
  }
  reached.delete(`0 ${start.hash}`);
  return [...reached.values()].sort((a, b) => a.offset - b.offset);
}

/** The longest piece, if all others are prefixes of it. */
function onlyEnd(reached: readonly Reached[], root: Lineage): Reached | 'forked' | undefined {
  const longest = reached.reduce<Reached | undefined>(
    (best, one) => (best === undefined || one.offset > best.offset ? one : best),
    undefined,
  );
  if (longest === undefined) return undefined;
  const bytes = bytesOf(longest);
  const lineage = root.copy();
  let end = 0;
  for (const { offset, hash } of [...reached].sort((a, b) => a.offset - b.offset)) {
    lineage.append(bytes.subarray(end * bytesPerToken, offset * bytesPerToken));
    end = offset;
    if (lineage.value !== hash) return 'forked';
  }
  return longest;
}

function bytesOf(end: Reached): Buffer {
  const parts: Buffer[] = [];
  for (let one: Reached | undefined = end; one !== undefined; one = one.from) parts.unshift(one.bytes);
  return Buffer.concat(parts);
}
