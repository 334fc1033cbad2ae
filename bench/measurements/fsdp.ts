/** Tokens per second of a training step of the torch engine on two ranks, against FSDP2 without petrel. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PackedBatch, PolicyEngine } from '../../core/ports/policy.ts';
import type { EngineEnvironment } from '../../infra/engines/environment.ts';
import { torchEngines } from '../../workers/engine/engines/torch/index.ts';
import { secondsUntil } from '../clock.ts';
import type { BenchSettings, Measurement, Session } from '../measurement.ts';
import { randomTokens } from '../model.ts';
import { saveSize } from '../saved-size.ts';
import { sizeOf } from '../sizes.ts';
import type { Size } from '../sizes.ts';

const name = 'fsdp.R.throughput';
const ranks = 2;
/** Number of sequences of one forward and backward pass on one rank, on both sides. */
const sequencesPerPass = 4;

export const throughTorch = (environment: EngineEnvironment): Measurement => ({
  name,
  rows: [{ name, unit: 'tokens/s' }],
  turns: 5,
  open: (settings) => open(environment, settings),
  peerName: 'fsdp',
  peer: ({ quick, threads }) => ({
    ...sizeOf('R', quick),
    ranks,
    threads_per_rank: Math.max(1, Math.floor(threads / ranks)),
    sequences_per_pass: sequencesPerPass,
  }),
});

async function open(environment: EngineEnvironment, { quick, precision, threads }: BenchSettings): Promise<Session> {
  const size = sizeOf('R', quick);
  const folder = mkdtempSync(join(tmpdir(), 'petrel-bench-fsdp-'));
  await saveSize(folder, size);
  const options = { compute: precision, deterministic: false, threads, trainable: true, ranks } as const;
  const policy = await torchEngines({ threads, ...environment }).open({ folder, head: 'tokens' }, options);
  await policy.load({ type: 'folder', folder });
  await takeStep(policy, size);
  const tokens = size.batch * size.length;
  return {
    about: `${tokens} tokens a step on ${ranks} ranks`,
    turn: async () => ({ [name]: tokens / (await secondsUntil(() => takeStep(policy, size))) }),
    async close() {
      await policy.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function takeStep(policy: PolicyEngine, { batch, length, shape }: Size): Promise<void> {
  const inPass = ranks * sequencesPerPass;
  for (let first = 0; first < batch; first += inPass) {
    const packs = Array.from({ length: ranks }, (_, lane) =>
      packOf(Math.min(sequencesPerPass, batch / ranks), length, shape.vocab_size, first + lane),
    );
    const passes = await policy.forward(packs, { temperature: 1, wants: ['logProbs'], keep: true });
    const gradient = 1 / (batch * length);
    await policy.backward(
      passes.map(({ handle, outputs }) => ({
        handle,
        gradients: { logProbs: new Float32Array(outputs.logProbs.length).fill(gradient) },
      })),
    );
  }
  await policy.step({ lr: 1e-5, beta1: 0.9, beta2: 0.999, eps: 1e-8, weightDecay: 0.01, maxGradNorm: 1 });
}

/** Every token but the last of each sequence scores the one behind it. */
function packOf(sequences: number, length: number, vocab: number, seed: number): PackedBatch {
  const tokens_N = randomTokens(sequences * length, vocab, 1 + seed);
  const positions_P = Int32Array.from(tokens_N.keys()).filter((i) => (i + 1) % length !== 0);
  return {
    tokens_N,
    cuSeqlens: Int32Array.from({ length: sequences + 1 }, (_, i) => i * length),
    positions_P,
    targets_P: positions_P.map((i) => tokens_N[i + 1] ?? 0),
  };
}
