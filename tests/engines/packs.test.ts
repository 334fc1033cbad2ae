// @module-tag engines
/** Sequences in a pack have the log-probs that each has alone; a family whose sequences would mix is refused. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { readEnvironment } from '../../infra/engines/environment.ts';
import { packageRoot, petrelHome } from '../../infra/home.ts';

interface Family {
  readonly family: string;
  /** The name of the attention that computed the pack. */
  readonly attention?: string;
  /** Largest distance of a log-prob from that of its sequence alone. */
  readonly apart?: number;
  readonly refused?: string;
}

interface Kernel {
  /** Whether the kernel for packs takes what is within its limits. */
  readonly taken: readonly boolean[];
  readonly left: readonly boolean[];
}

it('each family attends in a pack as it does alone, or is refused', async () => {
  const { python = '' } = readEnvironment(petrelHome(), 'torch-cpu') ?? {};
  const script = join(packageRoot(), 'tests/engines/packs.py');
  const { stdout } = await promisify(execFile)(python, ['-I', '-B', script, join(packageRoot(), 'engines/torch')]);
  const lines = stdout.split('\n').filter((line) => line.startsWith('{'));
  const kernel = JSON.parse(lines.pop() ?? '') as Kernel;
  const families = lines.map((line) => JSON.parse(line) as Family);

  expect(families.map(({ family, attention, refused }) => `${family} ${attention ?? refused}`)).toEqual([
    'llama petrel_packed',
    'gemma3_text petrel_packed',
    'qwen2_moe petrel_packed',
    'phimoe petrel_packed',
    'afmoe petrel_packed',
    'llama4_text sdpa',
    'granitemoehybrid petrel_packed',
    expect.stringMatching(/^granitemoehybrid .* layers of type linear_attention that carry a state/),
    expect.stringMatching(/^lfm2 .* layers of type conv that carry a state/),
    expect.stringMatching(/^lfm2_moe .* layers of type conv that carry a state/),
    expect.stringMatching(/^minimax .* layers of type linear_attention that carry a state/),
    expect.stringMatching(/^gemma3_text .* attends to later tokens/),
    expect.stringMatching(/^bart .* takes no positions of tokens/),
  ]);
  for (const { apart } of families) if (apart !== undefined) expect(apart).toBeLessThan(1e-4);
  expect(new Set(kernel.taken)).toEqual(new Set([true]));
  expect(new Set(kernel.left)).toEqual(new Set([false]));
});
