// @module-tag engines
/** Low-rank adapters: the contracts of engines and samplers, whole runs, and what is exported. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { exportPolicy } from '../../api/checkpoints/export.ts';
import { forwardOne } from '../../core/ports/one-lane.ts';
import { actorOf } from '../../core/records/components.ts';
import { readEnvironment } from '../../infra/engines/environment.ts';
import { petrelHome } from '../../infra/home.ts';
import { batchOf } from '../../native/testing/decoders.ts';
import { engineContract, learn, randomState, samplerContract } from '../contracts/engine.ts';
import { savedAdapter } from '../contracts/model.ts';
import { InProcessLoop, sevens } from '../in-process-loop.ts';
import { tinySizes } from '../loop-inputs.ts';
import { hfHere, torchHere, vllmHere } from './engines-here.ts';

// vLLM's attention on a processor knows no head of fewer than 32 values.
const model = await savedAdapter({ hidden_size: 64, num_attention_heads: 2, num_key_value_heads: 1 });
const options = { compute: 'fp32', deterministic: true, threads: 2, trainable: true } as const;

describe.each([1, 2])('%i ranks', (ranks) =>
  engineContract('torch with an adapter', torchHere(), hfHere(), { ranks, model }),
);
samplerContract('vllm with an adapter', torchHere(), vllmHere(), model);

it('scores as its base with the adapter off, before and after it learns', async () => {
  const torch = torchHere();
  const [adapted, whole] = [
    await torch.open(model, options),
    await torch.open({ folder: join(model.folder, 'base'), head: 'tokens' }, options),
  ];
  try {
    await whole.load({ type: 'folder', folder: join(model.folder, 'base') });
    const batch = batchOf({ vocab: 41 }, [7, 3, 5], 11);
    const wants = { temperature: 1, wants: ['logProbs'], keep: false } as const;
    const logProbs = async (of: Parameters<typeof forwardOne>[0]) =>
      (await forwardOne(of, batch, wants)).outputs.logProbs;
    const base = await logProbs(whole);
    if (adapted.base === undefined) throw new Error('a model with an adapter has a base');
    // A new adapter changes nothing.
    await adapted.load({ type: 'folder', folder: model.folder });
    expect(await logProbs(adapted)).toEqual(base);
    await adapted.load(randomState(adapted, 1));
    await learn(adapted);
    expect(await logProbs(adapted)).not.toEqual(base);
    expect(await logProbs(adapted.base)).toEqual(base);
    await expect(forwardOne(adapted.base, batch, { ...wants, keep: true })).rejects.toThrow(/does not learn/);
  } finally {
    await adapted.close();
    await whole.close();
  }
});

const lora = { lora_rank: 4, lora_alpha: 8, target_modules: ['q_proj', 'v_proj', 'down_proj'] };

describe('a run that trains an adapter', () => {
  const loop = new InProcessLoop(sevens, { engines: [torchHere(), hfHere(), vllmHere()] });
  beforeAll(() => loop.up({ ...tinySizes, num_attention_heads: 1, num_key_value_heads: 1 }));
  afterAll(() => loop.remove());
  const recipe = (name: string) => ({
    model: { ...lora, path: loop.modelFolder },
    trainer: { engine: 'torch', total_training_steps: 3, save_freq: 1 },
    rollout: { name },
    actor: { use_kl_loss: true, kl_loss_coef: 0.01 },
    deterministic: false,
  });

  it.each(['hf', 'vllm'])('has new weights in each iteration, sampled by %s', async (name) => {
    const run = await loop.completed(recipe(name));
    expect(new Set(run.iterations.map(({ update }) => actorOf(update.components).stateDigest)).size).toBe(3);
    const { inputs } = await run.log.revision();
    expect(inputs.reference).not.toBe(inputs.model);
  });

  it('is exported as a folder that peft loads, and as a whole model with the same log-probs', async () => {
    const run = await loop.completed(recipe('hf'));
    const [adapter, whole] = [join(loop.folder, 'adapter'), join(loop.folder, 'whole')];
    expect(await exportPolicy(run.log, { folder: adapter }, { home: loop.folder })).toMatchObject({ isAdapter: true });
    await exportPolicy(run.log, { folder: whole, merged: true }, { home: loop.folder });
    const python = readEnvironment(petrelHome(), 'torch-cpu')?.python ?? '';
    const script = [
      'import sys, torch',
      'from peft import AutoPeftModelForCausalLM',
      'from transformers import AutoModelForCausalLM',
      'ids = torch.tensor([[2, 3, 4, 5, 6]])',
      'adapted = AutoPeftModelForCausalLM.from_pretrained(sys.argv[1])(ids).logits',
      'merged = AutoModelForCausalLM.from_pretrained(sys.argv[2])(ids).logits',
      'base = AutoModelForCausalLM.from_pretrained(sys.argv[3])(ids).logits',
      'print(float((adapted - merged).abs().max()), float((adapted - base).abs().max()))',
    ].join('\n');
    const { stdout } = await promisify(execFile)(python, ['-c', script, adapter, whole, loop.modelFolder]);
    const [toMerged = Number.NaN, toBase = Number.NaN] = stdout.trim().split(' ').map(Number);
    expect(toMerged).toBeLessThan(1e-4);
    expect(toBase).toBeGreaterThan(1e-3);
  });
});
