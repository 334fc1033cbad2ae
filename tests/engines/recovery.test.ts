// @module-tag engines
/**
 * Whole runs on torch while ranks, samplers, workers and servers are killed, hang or get no memory: a few seeds of
 * `npm run test:recovery -- --engine …`.
 */
import { describe } from 'vitest';
import { Bed } from '../recovery/bed.ts';
import { engineChoice } from '../recovery/engine-choice.ts';
import { plansOnEngine } from '../recovery/plan.ts';
import { playSeeds } from '../recovery/play.ts';

describe.each([
  { engine: 'torch', seeds: [1, 4] },
  { engine: 'torch,hf', seeds: [1, 3] },
  { engine: 'torch,vllm', seeds: [3, 4] },
])('a run on $engine goes on by itself after any fault, and keeps what it promises', ({ engine, seeds }) => {
  const choice = engineChoice(engine);
  playSeeds(
    seeds.flatMap((seed) => plansOnEngine(choice, seed, 1)),
    () => new Bed(undefined, choice),
  );
});
