/** A thread that gets one question at a time, and is ended when its answer does not come in time. */
import type { Worker } from 'node:worker_threads';

export interface AnswerLimit {
  readonly timeoutMs: number;
  /** The error of this question, and of every later one, when no answer has come in time. */
  readonly tooLate: () => Error;
}

/** Why a thread ended by itself: what it threw, or its exit code. */
export type ThreadEnd = { readonly error: Error } | { readonly code: number };

interface Waiting<Answer> {
  readonly resolve: (message: Answer) => void;
  readonly reject: (error: Error) => void;
}

/** Keeps the process alive only while an answer is awaited. Whoever makes one closes it. */
export class AskedThread<Answer> {
  readonly #thread: Worker;
  #waiting: Waiting<Answer> | undefined;
  /** One question at a time. */
  #turn: Promise<unknown> = Promise.resolve();
  #ended: Error | undefined;

  /** `errorOf`: the error of the open question, and of every later one, when the thread ends by itself. */
  constructor(thread: Worker, errorOf: (end: ThreadEnd) => Error) {
    this.#thread = thread;
    thread.unref();
    thread.on('message', (message: Answer) => this.#take()?.resolve(message));
    thread.on('error', (error) => this.#end(errorOf({ error })));
    thread.on('exit', (code) => this.#end(errorOf({ code })));
  }

  /** False once the thread has ended: it answers no more. */
  get isAlive(): boolean {
    return this.#ended === undefined;
  }

  /** Does the work, with its question, after all earlier work. */
  allOf<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => {});
    return done;
  }

  /** The next message of the thread after `send`. Nothing but ending the thread stops an endless loop in it. */
  async answer(send: (thread: Worker) => void, { timeoutMs, tooLate }: AnswerLimit): Promise<Answer> {
    if (this.#ended !== undefined) throw this.#ended;
    const timer = setTimeout(() => {
      this.#end(tooLate());
      void this.#thread.terminate();
    }, timeoutMs);
    this.#thread.ref();
    try {
      return await new Promise((resolve, reject) => {
        this.#waiting = { resolve, reject };
        send(this.#thread);
      });
    } finally {
      clearTimeout(timer);
      this.#thread.unref();
    }
  }

  /** Ends the thread; open and later questions get this error. */
  async close(error: Error): Promise<void> {
    this.#end(error);
    await this.#thread.terminate();
  }

  /** The first error is kept. */
  #end(error: Error): void {
    this.#ended ??= error;
    this.#take()?.reject(this.#ended);
  }

  #take(): Waiting<Answer> | undefined {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    return waiting;
  }
}
