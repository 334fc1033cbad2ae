import { expect, it } from 'vitest';
import type { EngineParameter } from '../../../core/parameters.ts';
import type { PolicyEngine } from '../../../core/ports/policy.ts';
import { publishedBytes } from '../../../core/records/publications.ts';
import type { TrainedState } from './models.ts';
import { WeightsDesk } from './weights-desk.ts';
import type { WeightsDeskPorts } from './weights-desk.ts';

const parameters: readonly EngineParameter[] = [
  { name: 'embedding', shape: [4, 2], offset: 0, size: 8, computed: 'F32' },
  { name: 'matrix', shape: [2, 2], offset: 8, size: 4, computed: 'BF16' },
];
const digest = 'a'.repeat(64);

/** Bytes of the weights of this name that a trainer gives whose state is tagged so. */
async function readableBytes(tag: object): Promise<number | undefined> {
  const engine = { parameters } as unknown as PolicyEngine;
  const trained = [{ runId: 'run', state: { tag, engine } }] as unknown as readonly TrainedState[];
  const desk = new WeightsDesk({ trained: () => trained } as unknown as WeightsDeskPorts);
  return (await desk.readable('run', digest))?.bytes();
}

it('gives weights in the form in which they are published, also where the state has the same name', async () => {
  const publication = { format: 'BF16', digest };
  const [rounded, whole] = [publishedBytes(parameters, 'BF16'), publishedBytes(parameters, 'F32')];
  expect(rounded).toBeLessThan(whole);
  expect(await readableBytes({ weightsDigest: digest, publication })).toBe(rounded);
  expect(await readableBytes({ weightsDigest: 'b'.repeat(64), publication })).toBe(rounded);
  expect(await readableBytes({ weightsDigest: digest })).toBe(whole);
});
