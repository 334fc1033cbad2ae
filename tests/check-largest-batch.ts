/**
 * `npm run check:batch -- [--prompts 12500] [--response-tokens 1000]`: an update of 8 responses to each prompt, from
 * the trajectories to the last step, with an engine that computes nothing. Fails when a buffer has more than 1 GiB.
 * `--prompts 64 --response-tokens 32768`: an iteration of 512 long responses.
 */
import { deepStrictEqual, ok } from 'node:assert';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Store } from '../core/ports/store.ts';
import { openFolderStore } from '../infra/store/folder.ts';
import { largestBuffer } from './buffer-sizes.ts';
import { CountingEngine, madeBatch, storeParts, updated } from './largest-batch.ts';

const { values } = parseArgs({
  options: {
    prompts: { type: 'string', default: '12500' },
    'response-tokens': { type: 'string', default: '1000' },
  },
});
const responseTokens = Number(values['response-tokens']);
/** A rollout job has about a million tokens. */
const promptsPerPart = Math.max(1, Math.round(125_000 / responseTokens));
const size = {
  ...{ prompts: Number(values.prompts), samplesPerPrompt: 8, promptTokens: 100, responseTokens },
  ...{ promptsPerPart, promptsPerStep: 4 * promptsPerPart },
};
if (!Number.isInteger(size.prompts / size.promptsPerStep) || size.prompts < 1)
  throw new Error(`--prompts must be a multiple of ${size.promptsPerStep}, not ${values.prompts}.`);
const tokens = size.prompts * size.samplesPerPrompt * size.responseTokens;

const started = performance.now();
const gib = (bytes: number) => `${(bytes / 2 ** 30).toFixed(2)} GiB`;
const say = (text: string) =>
  console.log(`${((performance.now() - started) / 1000).toFixed(1).padStart(6)} s  ${text}`);
const peak = () => gib(process.resourceUsage().maxRSS * 1024);

const folder = mkdtempSync(join(tmpdir(), 'petrel-largest-'));
try {
  await check(await openFolderStore(join(folder, 'store')));
} finally {
  rmSync(folder, { recursive: true });
}

async function check(plain: Store): Promise<void> {
  const parts = await storeParts(plain, size);
  say(`the trajectories of ${tokens} response tokens are stored`);
  const engine = new CountingEngine();
  const largest = await largestBuffer(async (note) => {
    const store = measuredStore(plain, note);
    const made = await madeBatch(store, size, parts, engine);
    say(`the batch is made, in ${made.shards?.length ?? 1} objects; peak ${peak()}`);
    deepStrictEqual(made.metrics['training/response_tokens'], tokens);
    deepStrictEqual(made.metrics['training/rollout_probs_diff_valid'], 1);
    deepStrictEqual(engine.scoredTokens, 2 * tokens, 'old and reference log-probs of every token');
    const applied = await updated(store, made, engine);
    deepStrictEqual(applied.outcome, 'applied');
    say(`the update is applied; peak ${peak()}`);
  });
  deepStrictEqual([engine.trainedTokens, engine.steps], [tokens, size.prompts / size.promptsPerStep]);
  say(`the largest buffer had ${gib(largest)}`);
  ok(largest <= 2 ** 30, 'a buffer of more than 1 GiB was made');
}

/** Tells the size of everything that is read or written whole. */
function measuredStore(store: Store, note: (bytes: number) => void): Store {
  return new Proxy(store, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      return async (...given: unknown[]) => {
        const result: unknown = await (value as (...values: unknown[]) => unknown).apply(target, given);
        for (const one of [...given, result]) if (ArrayBuffer.isView(one)) note(one.byteLength);
        return result;
      };
    },
  });
}
