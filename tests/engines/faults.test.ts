// @module-tag engines
/** What becomes of a group of ranks when one of them is killed or hangs, or its worker is killed. */
import { execFileSync, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { forwardOne } from '../../core/ports/one-lane.ts';
import type { PolicyEngine } from '../../core/ports/policy.ts';
import { packageRoot } from '../../infra/home.ts';
import { batchOf } from '../../native/testing/decoders.ts';
import type { TorchOptions } from '../../workers/engine/engines/torch/index.ts';
import { learn, randomState } from '../contracts/engine.ts';
import { savedModel } from '../contracts/model.ts';
import { torchHere } from './engines-here.ts';

const model = savedModel({ num_hidden_layers: 12, hidden_size: 96, intermediate_size: 256 });
const options = { compute: 'fp32', deterministic: true, threads: 2, trainable: true, ranks: 2 } as const;
const long = batchOf({ vocab: 41 }, [400, 400, 400, 400], 1);
const gone = { kind: 'retryable', code: 'EngineExited' };
const isThere = (pid: number) => existsSync(`/proc/${pid}`);

const open: PolicyEngine[] = [];
afterEach(async () => {
  for (const engine of open.splice(0)) await engine.close();
});

async function start(some: Partial<TorchOptions> = {}, count = 2) {
  const ranks: ChildProcess[] = [];
  const engines = torchHere({ onStart: (child) => void ranks.push(child), ...some });
  const engine = await engines.open(model, { ...options, ranks: count });
  open.push(engine);
  await engine.load(randomState(engine, 1));
  return { engine, ranks, pids: ranks.map(({ pid }) => pid ?? 0) };
}

describe('a rank that is killed', () => {
  it.each([0, 1])('ends the group: rank %i', async (which) => {
    const { engine, ranks, pids } = await start();
    const running = learn(engine, long);
    running.catch(() => {});
    ranks[which]?.kill('SIGKILL');
    await expect(running).rejects.toMatchObject({ ...gone, message: expect.stringContaining(`rank ${which} ended`) });
    await engine.exited;
    await expect(engine.zeroGrads()).rejects.toMatchObject(gone);
    await engine.close();
    expect(pids.filter(isThere)).toEqual([]);
  });
});

describe('a rank that gets no more memory', () => {
  it('fails at its next large array, and the group ends', async () => {
    const { engine, pids } = await start();
    await learn(engine);
    execFileSync('prlimit', ['--pid', String(pids[1]), '--as=1', '--data=1']);
    await expect(learn(engine, long)).rejects.toMatchObject(gone);
    await engine.exited;
    await engine.close();
    expect(pids.filter(isThere)).toEqual([]);
  });
});

describe('a rank that hangs', () => {
  it('is named, and the group ends', async () => {
    const { engine, ranks, pids } = await start({ hungAfterSeconds: 10 });
    ranks[1]?.kill('SIGSTOP');
    await expect(learn(engine)).rejects.toMatchObject({
      ...gone,
      message: expect.stringMatching(/rank .*1 did not move for 10 s/),
    });
    await engine.exited;
    await engine.close();
    expect(pids.filter(isThere)).toEqual([]);
  });
});

describe('a worker that is killed', () => {
  it('leaves no rank', async () => {
    const program = `
      import { torchHere } from './tests/engines/engines-here.ts';
      const pids = [];
      const engines = torchHere({ onStart: (child) => pids.push(child.pid) });
      const model = ${JSON.stringify(model)};
      await engines.open(model, ${JSON.stringify(options)});
      console.log(JSON.stringify(pids));
      setInterval(() => {}, 1000);`;
    const strip = join(packageRoot(), 'rewards/host/strip-types.mjs');
    const worker = spawn(process.execPath, ['--import', strip, '--input-type=module', '-e', program], {
      cwd: packageRoot(),
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const text = await new Promise<string>((resolve) => worker.stdout.once('data', (data) => resolve(String(data))));
    const pids = JSON.parse(text) as number[];
    expect(pids.filter(isThere)).toHaveLength(2);
    worker.kill('SIGKILL');
    await expect.poll(() => pids.filter(isThere)).toEqual([]);
  });
});

describe('a caller whose result is no longer needed', () => {
  it('leaves at once, and the next call has its own answer', async () => {
    const { engine } = await start();
    const leave = new AbortController();
    const wants = ['logProbs'] as const;
    const running = forwardOne(engine, long, { temperature: 1, wants, keep: false }, { signal: leave.signal });
    leave.abort(new Error('cancelled'));
    await expect(running).rejects.toThrow('cancelled');
    const { outputs } = await forwardOne(engine, long, { temperature: 1, wants, keep: false });
    expect(outputs.logProbs.every((value) => value < 0)).toBe(true);
  });
});

describe('two micro-batches at once', () => {
  it('give what they give one after the other, and one gradient', async () => {
    const [{ engine: two }, { engine: one }] = [await start(), await start({}, 1)];
    const batches = [batchOf({ vocab: 41 }, [7, 3], 1), batchOf({ vocab: 41 }, [5, 9, 2], 2)];
    const wants = ['logProbs', 'entropy'] as const;
    const together = await two.forward(batches, { temperature: 1, wants, keep: true });
    const gradientsOf = (b: number) => ({ logProbs: new Float32Array(batches[b]?.positions_P.length ?? 0).fill(-0.1) });
    await two.backward(together.map(({ handle }, b) => ({ handle, gradients: gradientsOf(b) })));
    for (const [b, batch] of batches.entries()) {
      const alone = await forwardOne(one, batch, { temperature: 1, wants, keep: true });
      for (const name of wants)
        alone.outputs[name].forEach((value, i) => expect(together[b]?.outputs[name][i]).toBeCloseTo(value, 5));
      await one.backward([{ handle: alone.handle, gradients: gradientsOf(b) }]);
    }
    const adamw = { lr: 0.01, beta1: 0.9, beta2: 0.99, eps: 1e-8, weightDecay: 0.1, maxGradNorm: 1 };
    const [a, b] = [await two.step(adamw), await one.step(adamw)];
    expect(a.gradNorm).toBeCloseTo(b.gradNorm, 4);
  });
});
