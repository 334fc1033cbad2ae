/** A real chat model behind a real server: `transformers serve` with the base model of example 01 as the judge. */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { keys } from '../../core/records/keys.ts';
import { resultRecord } from '../../core/records/schema.ts';
import { parseScoreTable } from '../../core/wire/score-table.ts';
import { packageRoot } from '../../infra/home.ts';
import { freePorts, loopback } from '../../infra/ports.ts';
import { getJsonBlob } from '../../log/objects/blobs.ts';
import { readRecord } from '../../log/objects/records.ts';
import { LoopUnderTest } from '../loop-under-test.ts';
import { startServer, type TestServer } from '../servers.ts';

const python = process.env['PETREL_PYTHON'] ?? 'python3';
const isMissing = !hasPackages();
if (isMissing)
  console.log(
    `transformers serve is not asked: ${python} has no torch, transformers, fastapi and uvicorn (PETREL_PYTHON)`,
  );

const loop = new LoopUnderTest();
const judge = join(loop.home, 'judge');
let server: TestServer | undefined;
let url = '';
beforeAll(async () => {
  if (isMissing) return;
  cpSync(join(packageRoot(), 'examples/01-arithmetic-grpo/base'), judge, { recursive: true });
  writeFileSync(join(judge, 'chat_template.jinja'), `{% for m in messages %}{{ m['content'] }}{% endfor %}`);
  const [port] = (await freePorts(1)) as [number];
  url = `http://${loopback}:${port}/v1`;
  const folder = join(loop.home, 'serve');
  mkdirSync(folder, { recursive: true });
  const args = ['serve', judge, '--host', loopback, '--port', String(port), '--device', 'cpu'];
  const [started] = await Promise.all([
    startServer(
      'transformers',
      folder,
      python,
      ['-m', 'transformers.cli.transformers', ...args],
      { ...process.env, HF_HUB_OFFLINE: '1', HF_HOME: join(loop.home, 'hf') },
      async () => (await fetch(`http://${loopback}:${port}/health`).catch(() => undefined))?.ok === true,
    ),
    loop.up(),
  ]);
  server = started;
});
afterAll(async () => {
  await server?.stop();
  if (!isMissing) await loop.remove();
});

it.skipIf(isMissing)('transformers serve judges every response of a run (seed 42)', async () => {
  const run = await loop.completed({
    deterministic: 'replay',
    trainer: { total_training_steps: 2 },
    reward: {
      scorer: 'judge',
      custom_reward_function: { path: null },
      max_failed_fraction: 1,
      endpoint: {
        url,
        model: judge,
        template: '{response}+1=',
        max_tokens: 8,
        score_pattern: '([0-9])',
        score_range: [0, 9],
        max_concurrent: 4,
        max_tpm: 1_000_000,
      },
    },
  });
  const names = await loop.store.children(keys.results(run.runId));
  const tables = [];
  for (const name of names) {
    const read = await readRecord(loop.store, keys.result(run.runId, name.replace(/\.json$/, '')), resultRecord);
    if (read?.record.stage === 'reward')
      tables.push(
        parseScoreTable(await getJsonBlob(loop.store, run.runId, String(read.record.output['scores'])), name),
      );
  }
  const scores = tables.flatMap((table) => table.scores);
  const judgements = tables.flatMap(({ texts, scores: own }) => texts?.['judgement'] ?? own.map(() => null));
  expect(scores).toHaveLength(32);
  expect(scores.filter((score) => score !== null).length).toBeGreaterThan(16);
  for (const [i, score] of scores.entries())
    if (score !== null) expect(score).toBe(Number(/(?:[0-9])(?!.*[0-9])/.exec(judgements[i] ?? '')?.[0]));
});

it.skipIf(isMissing)('a model that it does not serve is refused at the start', async () => {
  const reward = {
    scorer: 'judge',
    custom_reward_function: { path: null },
    endpoint: { url, model: 'another', template: '{response}' },
  };
  await expect(loop.create({ deterministic: 'replay', reward })).rejects.toMatchObject({
    code: 'InvalidInput',
    message: expect.stringMatching(/does not serve the model another: HTTP 400 .*pinned to/),
  });
});

function hasPackages(): boolean {
  try {
    execFileSync(python, ['-c', 'import torch, transformers, fastapi, uvicorn'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
