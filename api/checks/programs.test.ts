/** What `petrel plan` and the start of a run find where the scorer runs programs. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Promises } from '../../core/recipe/index.ts';
import { packageRoot } from '../../infra/home.ts';
import { testPlaces } from '../../rewards/sandbox/places.test-support.ts';
import { cliHome, type CliHome } from '../../tests/cli.ts';
import type { PlanCheck } from './checks.ts';

const base = join(packageRoot(), 'examples/01-arithmetic-grpo/base');
const sound = JSON.stringify({ inputs: ['1 2\n'], outputs: ['3\n'] });
const canRun = testPlaces().length > 0;

let cli: CliHome;
beforeEach(() => {
  cli = cliHome();
  writeFileSync(
    join(cli.home, 'code.yaml'),
    `model: {path: ${base}}\ndata: {train_files: code.jsonl, train_batch_size: 2}\nactor: {ppo_mini_batch_size: 2}\nrollout: {n: 4}\n`,
  );
});
afterEach(() => cli.remove());

const row = (groundTruth: string) =>
  JSON.stringify({ data_source: 'taco', prompt: '1+2=', reward_model: { style: 'rule', ground_truth: groundTruth } });

async function plan(rows: readonly string[], ...words: string[]) {
  writeFileSync(join(cli.home, 'code.jsonl'), rows.map((one) => `${one}\n`).join(''));
  const { code, json } = await cli.petrel('plan', join(cli.home, 'code.yaml'), ...words, '--json');
  const { checks, promises } = json<{ checks: PlanCheck[]; promises: Promises }>();
  return {
    code,
    promises,
    scorer: checks.find(({ name }) => name === 'scorer'),
    failed: checks.filter(({ status }) => status === 'failed'),
  };
}

it.skipIf(!canRun)('an empty one is tried in a sandbox, and a short time limit is noted', async () => {
  expect((await plan([row(sound), row(sound)])).scorer).toMatchObject({
    status: 'warning',
    detail: expect.stringMatching(/the empty program of the first row scores 0; .*reward\.timeout=120/),
  });
  expect((await plan([row(sound), row(sound)], 'reward.timeout=120')).scorer).toMatchObject({ status: 'ok' });
});

it.skipIf(!canRun)('a row whose tests are damaged is named, and a deterministic run is refused', async () => {
  const { code, failed } = await plan([row(sound), row('{"inputs": ["1"], "outputs": []}')], 'reward.scorer=code');
  expect(code).toBe(8);
  expect(failed.find(({ name }) => name === 'training rows')?.detail).toMatch(/row 2: .*1 inputs and 0 outputs/);
  expect((await plan([row(sound), row(sound)], 'deterministic=true')).failed).toContainEqual(
    expect.objectContaining({
      detail: expect.stringMatching(/row 1: the scorer code is not declared deterministic/),
      hint: expect.stringContaining('deterministic: replay'),
    }),
  );
});

it.skipIf(!canRun)(
  'deterministic: replay does not promise equal weights, since time limits decide scores',
  async () => {
    const { scorer, promises } = await plan([row(sound), row(sound)], 'deterministic=replay');
    expect({ scorer, promises }).toMatchObject({
      scorer: { status: 'warning' },
      promises: { replay: true, endToEnd: false },
    });
  },
);

it('where bubblewrap is missing the recipe is refused, with what to type', async () => {
  const path = process.env['PATH'];
  process.env['PATH'] = cli.home;
  try {
    for (const word of ['reward.scorer=null', 'reward.scorer=code']) {
      const { code, failed } = await plan([row(sound), row(sound)], word);
      expect(code).toBe(8);
      expect(failed).toContainEqual(
        expect.objectContaining({ code: 'NoSandbox', hint: expect.stringContaining('apt-get install bubblewrap') }),
      );
    }
  } finally {
    process.env['PATH'] = path;
  }
});
