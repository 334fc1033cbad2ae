/** An engine in a process of its own passes the contract, and its death is an answer to every call. */
import type { ChildProcess } from 'node:child_process';
import { afterEach, describe, expect, it } from 'vitest';
import { forwardOne } from '../../core/ports/one-lane.ts';
import type { PolicyEngine } from '../../core/ports/policy.ts';
import { Generation } from '../../workers/engine/generation/generation.ts';
import { batchOf } from '../../native/testing/decoders.ts';
import { childEngines } from './child-engine.ts';
import { savedModel } from './model.ts';
import { engineContract, learn, partOf, randomState } from './engine.ts';

const engines = childEngines();
engineContract('an engine in a child process', engines, engines);
engineContract(
  'an engine of two lanes, named by lineage, whose sampler draws its own random bits',
  childEngines({ name: 'torch', lanes: 2, lineage: true, seeded: true }),
  childEngines({ name: 'vllm', seeded: true }),
);

describe('an engine that is killed in mid-call', () => {
  const model = savedModel({ num_hidden_layers: 12, hidden_size: 96, intermediate_size: 256 });
  const options = { compute: 'fp32', deterministic: true, threads: 1, trainable: true } as const;
  const long = batchOf({ vocab: 41 }, [400, 400, 400, 400], 1);
  const open: PolicyEngine[] = [];
  const start = async () => {
    let child: ChildProcess | undefined;
    const engines = childEngines({ onStart: (started) => (child = started) });
    const engine = await engines.open(model, options);
    open.push(engine);
    await engine.load(randomState(engine, 1));
    if (child === undefined) throw new Error('a policy starts a child');
    return { engines, engine, child };
  };
  afterEach(async () => {
    for (const engine of open.splice(0)) await engine.close();
  });
  const gone = { kind: 'retryable', code: 'EngineExited' };

  it.each([
    [
      'forward',
      (engine: PolicyEngine) => forwardOne(engine, long, { temperature: 1, wants: ['logProbs'], keep: false }),
    ],
    ['an update', (engine: PolicyEngine) => learn(engine, long)],
    ['digests', (engine: PolicyEngine) => engine.blockDigests('weights', 64, 'blake3')],
    ['a load', (engine: PolicyEngine) => engine.load(randomState(engine, 2))],
  ])('rejects %s and every later call, and says that it has exited', async (_, call) => {
    const [{ engine, child }, other] = [await start(), await start()];
    const running = call(engine);
    running.catch(() => {});
    setImmediate(() => child.kill('SIGKILL'));
    await expect(running).rejects.toMatchObject(gone);
    await engine.exited;
    await expect(
      engine.step({ lr: 0, beta1: 0, beta2: 0, eps: 1, weightDecay: 0, maxGradNorm: 0 }),
    ).rejects.toMatchObject(gone);
    await engine.close();
    await learn(other.engine);
  });

  it('fails the jobs that sample from it, and each later one', async () => {
    const { engines, engine, child } = await start();
    const sampler = await engines.samplerOf?.(engine);
    if (sampler === undefined) throw new Error('a child samples in place');
    await sampler.makeRoom({ maxSeqs: 4, maxModelLen: 400 });
    const generation = new Generation(Promise.resolve(sampler));
    const settings = {
      runId: 'run-1',
      sampling: { temperature: 1, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 },
      maxNewTokens: 300,
      stopTokens: new Int32Array(),
      seed: [1, 2] as const,
    };
    const prompt = Int32Array.of(1, 2);
    const sample = (onTokens: () => void) =>
      generation.sample({ prompt, draw: 0, sample: 0, turn: 0, settings }, { onTokens }).ended;
    await expect(sample(() => child.kill('SIGKILL'))).rejects.toMatchObject(gone);
    await expect(sample(() => {})).rejects.toMatchObject(gone);
  });

  it('lets a caller leave at once whose result is no longer needed', async () => {
    const { engine } = await start();
    const leave = new AbortController();
    const running = forwardOne(
      engine,
      long,
      { temperature: 1, wants: ['logProbs'], keep: false },
      { signal: leave.signal },
    );
    leave.abort(new Error('cancelled'));
    await expect(running).rejects.toThrow('cancelled');
    expect((await partOf(engine, 'weights')).length).toBe(engine.elements);
  });
});
