/** Sampling at temperature 1 from prompts of random tokens, one sample each, without a stop token. */
import type { NativeGenerator } from '../native/index.ts';
import { createGenerator } from '../native/index.ts';
import type { NativeTrainer } from '../native/index.ts';
import { secondsOf } from './clock.ts';
import type { BenchSettings } from './measurement.ts';
import { openModel, randomTokens } from './model.ts';
import { newTokens } from './sizes.ts';
import type { Size } from './sizes.ts';

/** Positions of prompts that the engine runs in a step. While later prompts are prefilled, earlier samples decode. */
const prefillPerStep = 512;

export class Decoding {
  readonly #size: Size;
  readonly #batch: number;
  /** Tokens that the first sample has when the last one gets its first, at most. */
  readonly #ahead: number;
  readonly #trainer: NativeTrainer;
  readonly #generator: NativeGenerator;
  #draw = 0;

  constructor(size: Size, batch: number, settings: BenchSettings) {
    this.#size = size;
    this.#batch = batch;
    this.#ahead = Math.ceil((batch * size.prompt) / prefillPerStep) + 1;
    this.#trainer = openModel(size, settings, false);
    const maxModelLen = size.prompt + this.#ahead + newTokens;
    this.#generator = createGenerator(this.#trainer, { maxSeqs: batch, maxModelLen });
  }

  /** Prefills all prompts and draws `tokens` tokens for each. */
  make(tokens: number): void {
    for (let i = 0; i < this.#batch; i++) this.#submit(i, tokens);
    while (this.#generator.stats.live + this.#generator.stats.waiting > 0) this.#generator.step();
  }

  /** Seconds of `steps` steps of the whole batch, after every prompt was prefilled. */
  decodeSeconds(steps: number): number {
    const prefilled = this.#generator.stats.prefilledTokens + this.#batch * this.#size.prompt;
    for (let i = 0; i < this.#batch; i++) this.#submit(i, this.#ahead + steps);
    while (this.#generator.stats.prefilledTokens < prefilled) this.#generator.step();
    let made = 0;
    const seconds = secondsOf(() => {
      for (let i = 0; i < steps; i++) made += this.#generator.step().tokens.length;
    });
    if (made !== this.#batch * steps)
      throw new Error(`expected ${this.#batch * steps} tokens, the engine made ${made}`);
    this.#generator.reset();
    return seconds;
  }

  close(): void {
    this.#generator.close();
    this.#trainer.close();
  }

  #submit(i: number, tokens: number): void {
    this.#draw += 1;
    this.#generator.submit({
      prompt: randomTokens(this.#size.prompt, this.#size.shape.vocab_size, 1 + i),
      samples: [{ key: i + 1, random: { seed: [1, 2], draw: this.#draw, sample: 0, turn: 0 } }],
      sampling: { temperature: 1, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 },
      maxNewTokens: tokens,
      stopTokens: new Int32Array(0),
    });
  }
}
