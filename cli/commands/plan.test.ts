import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { packageRoot } from '../../infra/home.ts';
import { arithmeticRows } from '../../api/data/arithmetic.ts';
import { writeRows } from '../../api/data/rows-file.ts';
import type { PlanReport } from '../../api/plan/report.ts';
import { commandContext } from '../context.ts';
import { createPrinter } from '../printer/printer.ts';
import { run } from './plan.ts';

const MODELS = join(packageRoot(), 'tests/golden/models');

let cwd: string;
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'petrel-plan-'));
  const rows = arithmeticRows({
    rows: 100,
    seed: 1,
    split: 'train',
    preset: 'digits',
    digits: 2,
    sft: false,
    careless: 0,
    dataSource: 'arithmetic',
    exclude: new Set(),
  });
  writeRows(join(cwd, 'train.jsonl'), rows);
  writeFileSync(
    join(cwd, 'toy.yaml'),
    `model: {path: ${MODELS}/qwen3}\ndata: {train_files: train.jsonl, train_batch_size: 20}\nactor: {ppo_mini_batch_size: 10}\nrollout: {n: 4}\nreward: {scorer: last_integer}\ntrainer: {total_epochs: 3}\n`,
  );
});
afterEach(() => rmSync(cwd, { recursive: true }));

async function plan(...words: string[]): Promise<{ readonly exitCode: number; readonly report: PlanReport }> {
  let out = '';
  const stdout = { write: (text: string) => void (out += text) };
  const printer = createPrinter({ json: true, stdout, stderr: stdout, env: {} });
  const exitCode = await run(
    { words: ['toy.yaml', ...words], options: { json: true } },
    commandContext(printer, {}, cwd),
  );
  return { exitCode, report: JSON.parse(out) as PlanReport };
}

describe('petrel plan', () => {
  it('says how long the run is from the rows it counted, and what the model is', async () => {
    const { exitCode, report } = await plan();
    expect(exitCode).toBe(0);
    expect(report.batch).toMatchObject({ responses: 80, optimizerSteps: 2 });
    expect(report.run).toMatchObject({ iterations: 15, optimizerSteps: 30, checkpoints: 2, validations: 0 });
    expect(report.checks.map(({ name, status }) => `${name} ${status}`)).toEqual([
      'model ok',
      'training rows ok',
      'scorer ok',
    ]);
    expect(report.checks[0]?.detail).toContain('qwen3');
  });

  it('ends with 2 and the nearest legal values when the batch cannot be cut', async () => {
    const { exitCode, report } = await plan('actor.ppo_mini_batch_size=7');
    expect(exitCode).toBe(2);
    expect(report.problems[0]).toMatchObject({ path: 'actor.ppo_mini_batch_size', expected: '5 or 10' });
  });

  it('ends with 8 and names the row that is damaged', async () => {
    writeFileSync(join(cwd, 'bad.jsonl'), '{"prompt": "1+1="}\n{"prompt": \n');
    const { exitCode, report } = await plan('data.train_files=bad.jsonl');
    expect(exitCode).toBe(8);
    expect(report.checks[1]).toMatchObject({ status: 'failed', detail: expect.stringContaining('bad.jsonl:2') });
  });

  it('ends with 8 for a row without its column, and for an architecture that is not supported', async () => {
    const { exitCode, report } = await plan('data.prompt_key=question', `model.path=${MODELS}/mixtral`);
    expect(exitCode).toBe(8);
    expect(report.checks.map(({ detail }) => detail)).toEqual([
      expect.stringContaining('MixtralForCausalLM'),
      expect.stringContaining('no column "question", it has data_source, prompt'),
      'last_integer',
    ]);
  });

  it('ends with 8 when there is no scorer for a row, or none of that name', async () => {
    const { exitCode, report } = await plan('reward.scorer=null');
    expect([exitCode, report.checks[1]]).toEqual([
      8,
      expect.objectContaining({ detail: expect.stringContaining('no scorer for data_source "arithmetic"') }),
    ]);
    expect((await plan('reward.scorer=last_intger')).report.checks.at(-1)).toMatchObject({
      name: 'scorer',
      status: 'failed',
    });
  });

  it('leaves a model of the hub for the start of the run', async () => {
    const { exitCode, report } = await plan('model.path=org/name');
    expect([exitCode, report.checks[0]?.status]).toEqual([0, 'later']);
  });
});
