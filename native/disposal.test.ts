/** Engines that are ended at any moment, that share a process, and that come and go. */
import { describe, expect, it } from 'vitest';
import { generate, request, runUntilIdle, stepInto, type Response } from './testing/generation.ts';
import { createGenerator } from './index.ts';
import { linesOf } from './testing/child.ts';
import { batchOf, decoder, trainerOf } from './testing/decoders.ts';
import type { Held } from './testing/rounds-main.ts';

describe('a thread that is ended while it', () => {
  for (const [work, doing] of [
    ['train', 'trains'],
    ['generate', 'generates'],
  ] as const) {
    it(`${doing} frees its engine after the call, and other engines compute the same as before`, () => {
      const [count, before, after] = linesOf('threads-main.ts', { args: ['ended', work] });
      expect(count).toBe('3');
      expect(before).toMatch(/^[0-9a-f]{64}$/);
      expect(after).toBe(before);
    });
  }

  it('trains does not keep the process from leaving', () => {
    expect(linesOf('left-main.ts')).toEqual(['leaving']);
  });
});

describe('two engines in one process', () => {
  it('compute the same on threads of their own at once as one after the other', () => {
    const [alone = '', together] = linesOf('threads-main.ts', { args: ['together'] });
    expect(new Set(JSON.parse(alone) as string[]).size).toBe(7);
    expect(together).toBe(alone);
  });

  it('compute the same in turns, with different numbers of threads, as one after the other', () => {
    const config = decoder({ hidden: 40, ffn: 70 });
    const engine = (seed: number, threads: number) => {
      const trainer = trainerOf(config, seed, { threads });
      const generator = createGenerator(trainer, { maxSeqs: 3, maxModelLen: 60 });
      generator.submit(request([1, 2, 3, seed], 1, 3));
      const responses = new Map<number, Response>();
      const step = () => {
        const batch = batchOf(config, [7, 12], seed);
        const {
          outputs: { logProbs: logProbs_P },
        } = trainer.forward(batch, { temperature: 1, wants: ['logProbs'], keep: false });
        stepInto(responses, generator);
        return logProbs_P;
      };
      const end = () => {
        runUntilIdle(generator, responses);
        generator.close();
        trainer.close();
        return [...responses.values()];
      };
      return { step, end };
    };
    const alone = [engine(1, 1), engine(2, 3)].map(({ step, end }) => [[step(), step(), step()], end()]);
    const [a, b] = [engine(1, 1), engine(2, 3)];
    const inTurns = [0, 1, 2].map(() => [a.step(), b.step()] as const);
    expect([
      [inTurns.map(([first]) => first), a.end()],
      [inTurns.map(([, second]) => second), b.end()],
    ]).toEqual(alone);
  });
});

describe('samples that are dropped while others run', () => {
  it('leave no slot and no page behind, and do not change the others', () => {
    const trainer = trainerOf(decoder(), 4);
    const keptAlone = createGenerator(trainer, { maxSeqs: 4, maxModelLen: 60 });
    const expected = generate(keptAlone, [request([1, 2, 3], 1, 1)]).get(1);
    keptAlone.close();
    const generator = createGenerator(trainer, { maxSeqs: 4, maxModelLen: 60 });
    generator.submit(request([1, 2, 3], 1, 8));
    const responses = new Map<number, Response>();
    for (let key = 2; key <= 8; key++) {
      stepInto(responses, generator);
      generator.abort(key);
    }
    runUntilIdle(generator, responses);
    expect(responses.get(1)).toEqual(expected);
    expect(generator.stats).toMatchObject({ live: 0, waiting: 0, freeSlots: 4, kvPagesUsed: 0 });
    generator.close();
    trainer.close();
  });
});

const rounds = 1000;
it(`${rounds} rounds of create, use and dispose do not let the process grow`, () => {
  const lines = linesOf('rounds-main.ts', { args: [String(rounds)], node: ['--expose-gc'] });
  const [early, late] = lines.map((line) => JSON.parse(line) as Held);
  if (early === undefined || late === undefined) throw new Error(`two lines were expected, got ${lines.join(' ')}`);
  expect(late.threads).toBeLessThanOrEqual(early.threads);
  // The JavaScript heap comes and goes by some mappings; one that is leaked in each fourth round would add 200.
  expect(late.mappings).toBeLessThan(early.mappings + 200);
  // One round holds about half a MiB, so that one leaked buffer in a round would add more than 80 MiB.
  expect(late.residentMiB).toBeLessThan(early.residentMiB + 16);
});
