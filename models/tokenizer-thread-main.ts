/** The thread that opens tokenizers and asks them for the main thread: see tokenizer-thread.ts. */
import { parentPort } from 'node:worker_threads';
import { thrownToJson } from '../core/errors.ts';
import { openTokenizer } from './tokenizer.ts';
import type { Tokenizer } from './tokenizer.ts';
import type { FromTokenizers, OpenedTokenizer, ToTokenizers } from './tokenizer-thread.ts';

const port = parentPort;
if (port === null) throw new Error('models/tokenizer-thread-main.ts runs as a worker thread');

/** Tokenizers by folder. Opening one again reads its files again if they have changed. */
const tokenizers = new Map<string, Promise<Tokenizer>>();

port.on('message', ({ id, folder, call }: ToTokenizers) => {
  const answer = call === 'open' ? open(folder) : ask(folder, call);
  answer.then(
    (result) => port.postMessage({ id, result } satisfies FromTokenizers),
    (error: unknown) => port.postMessage({ id, thrown: thrownToJson(error) } satisfies FromTokenizers),
  );
});

async function open(folder: string): Promise<OpenedTokenizer> {
  const opening = openTokenizer(folder);
  tokenizers.set(folder, opening);
  opening.catch(() => tokenizers.delete(folder));
  const { specialTokens, chatTemplate, vocabSize, stopTokens } = await opening;
  return { specialTokens, chatTemplate, vocabSize, stopTokens };
}

async function ask(folder: string, { method, args }: Exclude<ToTokenizers['call'], 'open'>): Promise<unknown> {
  const tokenizer = await (tokenizers.get(folder) ?? openTokenizer(folder));
  return (tokenizer[method] as (...args: unknown[]) => Promise<unknown>).apply(tokenizer, [...args]);
}
