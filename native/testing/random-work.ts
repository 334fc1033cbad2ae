/** Training and generation of a random small decoder with odd sizes, as one digest. Same seed, same work. */
import { createHash } from 'node:crypto';
import type { EngineOptions } from '../../core/ports/policy.ts';
import { generate, isIdle, randomShape, randomInteger, randomNumbers, randomPrompt, request } from './generation.ts';
import { createGenerator, type NativeTrainer } from '../index.ts';
import { batchOf, decoder, trainerOf } from './decoders.ts';

/** SHA-256 of what one optimiser step and a few generated responses give. */
export function randomWork(seed: number, options: EngineOptions): string {
  const random = randomNumbers(seed);
  const trainer = trainerOf(decoder(randomShape(random)), seed, options);
  const hash = createHash('sha256');
  trainOnce(trainer, random, seed, hash);
  if (options.compute === 'bf16') hash.update(trainer.publishedDigests(1000));
  generateSome(trainer, random, hash);
  trainer.close();
  return hash.digest('hex');
}

type Hash = ReturnType<typeof createHash>;

function trainOnce(trainer: NativeTrainer, random: () => number, seed: number, hash: Hash): void {
  const lengths = Array.from({ length: randomInteger(random, 1, 5) }, () => randomInteger(random, 1, 40));
  const whole = batchOf(trainer.spec, lengths, seed);
  // Some positions only: the last layer then runs on fewer rows.
  const kept = whole.positions_P.filter((_, i) => i === 0 || random() < 0.7);
  const batch = { ...whole, positions_P: kept, targets_P: whole.targets_P.slice(0, kept.length) };
  const {
    handle,
    outputs: { logProbs: logProbs_P, entropy: entropy_P },
  } = trainer.forward(batch, { temperature: 0.9, wants: ['logProbs', 'entropy'], keep: true });
  trainer.backward(handle, { logProbs: logProbs_P.slice().fill(0.01), entropy: entropy_P.slice().fill(0.001) });
  trainer.step({ lr: 1e-3, beta1: 0.9, beta2: 0.95, eps: 1e-8, weightDecay: 0.1, maxGradNorm: 1 });
  hash.update(logProbs_P).update(entropy_P).update(trainer.read('weights'));
}

function generateSome(trainer: NativeTrainer, random: () => number, hash: Hash): void {
  const maxModelLen = 70;
  // Few pages, so that samples take all of them, the last one too.
  const generator = createGenerator(trainer, { maxSeqs: 5, maxModelLen, kvPages: Math.ceil(maxModelLen / 16) + 3 });
  const requests = Array.from({ length: 3 }, (_, i) =>
    request(randomPrompt(random, trainer.spec.vocab, 40), 10 * i + 1, randomInteger(random, 1, 4), {
      maxNewTokens: randomInteger(random, 1, 30),
      sampling: { temperature: 0.8, topK: random() < 0.5 ? 5 : 0, topP: 0.9, minP: 0.01, repetitionPenalty: 1.1 },
    }),
  );
  for (const { tokens, logProbs } of generate(generator, requests).values())
    hash.update(Int32Array.from(tokens)).update(Float32Array.from(logProbs));
  if (!isIdle(generator.stats)) throw new Error('the generator still has samples');
  generator.close();
}
