/**
 * Tokenizers on a thread of their own, one thread for a process. Opening a large vocabulary takes up to half a second,
 * in which the caller's event loop stays free.
 */
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { thrownFromJson } from '../core/errors.ts';
import type { ThrownJson } from '../core/errors.ts';
import type { BatchTokenizer, DecodeOptions, EncodeOptions, SpecialTokens } from './tokenizer.ts';

type Method = 'encodeBatch' | 'lengths' | 'decodeBatch';

/** `open` answers with OpenedTokenizer, a method with what the tokenizer of that folder returns. */
export interface ToTokenizers {
  readonly id: number;
  readonly folder: string;
  readonly call: 'open' | { readonly method: Method; readonly args: readonly unknown[] };
}

export type FromTokenizers = { readonly id: number } & ({ readonly result: unknown } | { readonly thrown: ThrownJson });

export type OpenedTokenizer = Pick<BatchTokenizer, 'specialTokens' | 'chatTemplate' | 'vocabSize' | 'stopTokens'>;

/** Throws InvalidInputError when a file is missing or damaged. */
export async function openTokenizerThread(folder: string): Promise<BatchTokenizer> {
  const opened = (await running().ask(folder, 'open')) as OpenedTokenizer;
  return new ThreadTokenizer(folder, opened);
}

class ThreadTokenizer implements BatchTokenizer {
  readonly #folder: string;
  readonly specialTokens: SpecialTokens;
  readonly chatTemplate: string | undefined;
  readonly vocabSize: number;
  readonly stopTokens: readonly number[];

  constructor(folder: string, { specialTokens, chatTemplate, vocabSize, stopTokens }: OpenedTokenizer) {
    this.#folder = folder;
    this.specialTokens = specialTokens;
    this.chatTemplate = chatTemplate;
    this.vocabSize = vocabSize;
    this.stopTokens = stopTokens;
  }

  encodeBatch(texts: readonly string[], options: EncodeOptions = {}): Promise<Int32Array[]> {
    return this.#call('encodeBatch', texts, options) as Promise<Int32Array[]>;
  }

  lengths(texts: readonly string[], options: EncodeOptions = {}): Promise<number[]> {
    return this.#call('lengths', texts, options) as Promise<number[]>;
  }

  decodeBatch(sequences: readonly Int32Array[], options: DecodeOptions = {}): Promise<string[]> {
    return this.#call('decodeBatch', sequences, options) as Promise<string[]>;
  }

  #call(method: Method, ...args: readonly unknown[]): Promise<unknown> {
    return running().ask(this.#folder, { method, args });
  }
}

let thread: TokenizerThread | undefined;

/** A thread that has ended is replaced. */
function running(): TokenizerThread {
  if (thread?.ended !== false) thread = new TokenizerThread();
  return thread;
}

/** Threads run built code, also for callers that run from source. */
const program = import.meta.url.endsWith('.ts')
  ? '../dist/models/tokenizer-thread-main.js'
  : './tokenizer-thread-main.js';

/**
 * Encodings hold native memory that the garbage collector does not count, so it must run often. Figures of a million
 * rows with and without this limit: docs/look-up/benchmarks.md.
 */
const youngMegabytes = 4;

interface Pending {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

class TokenizerThread {
  readonly #worker = new Worker(fileURLToPath(new URL(program, import.meta.url)), {
    execArgv: [], // the options of the caller's own `node` are not for this program
    resourceLimits: { maxYoungGenerationSizeMb: youngMegabytes },
  });
  readonly #pending = new Map<number, Pending>();
  #nextId = 1;
  ended = false;

  constructor() {
    this.#worker.unref();
    this.#worker.on('message', (message: FromTokenizers) => this.#receive(message));
    this.#worker.on('error', (error) => this.#died(error));
    this.#worker.on('exit', (code) => this.#died(new Error(`the tokenizer thread ended with code ${code}`)));
  }

  ask(folder: string, call: ToTokenizers['call']): Promise<unknown> {
    const id = this.#nextId++;
    this.#worker.ref(); // a process with an open call stays
    this.#worker.postMessage({ id, folder, call } satisfies ToTokenizers);
    return new Promise((resolve, reject) => this.#pending.set(id, { resolve, reject }));
  }

  #receive(message: FromTokenizers): void {
    const pending = this.#pending.get(message.id);
    this.#pending.delete(message.id);
    if (this.#pending.size === 0) this.#worker.unref();
    if ('thrown' in message) pending?.reject(thrownFromJson(message.thrown));
    else pending?.resolve(message.result);
  }

  #died(error: Error): void {
    this.ended = true;
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
  }
}
