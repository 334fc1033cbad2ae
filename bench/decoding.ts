/** Sampling at temperature 1 from prompts of random tokens, one sample each, without a stop token. */
import type { RolloutEngine } from '../core/ports.ts';
import { createGenerator } from '../native/index.ts';
import type { NativeTrainer } from '../native/index.ts';
import type { BenchSettings } from './measurement.ts';
import { openModel, randomTokens } from './model.ts';
import { newTokens } from './sizes.ts';
import type { Size } from './sizes.ts';

export class Decoding {
  readonly #size: Size;
  readonly #batch: number;
  readonly #trainer: NativeTrainer;
  readonly #generator: RolloutEngine;
  #draw = 0;

  constructor(size: Size, batch: number, settings: BenchSettings) {
    this.#size = size;
    this.#batch = batch;
    this.#trainer = openModel(size, settings, false);
    this.#generator = createGenerator(this.#trainer, { maxSeqs: batch, maxModelLen: size.prompt + newTokens });
  }

  /** Tokens made: batch × `tokens`, unless the engine did something else. */
  make(tokens: number): number {
    for (let i = 0; i < this.#batch; i++) this.#submit(i, tokens);
    let made = 0;
    while (this.#generator.stats.live + this.#generator.stats.waiting > 0) made += this.#generator.step().tokens.length;
    return made;
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
