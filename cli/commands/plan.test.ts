import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FakeHub } from '../../models/hub/fake-hub.test-support.ts';
import { FakeModelScope } from '../../models/hub/fake-modelscope.test-support.ts';
import { publishedModels } from '../../models/published-configs.test-support.ts';
import { temporaryHome, type TemporaryHome } from '../../tests/servers.ts';
import { writeEnvironment } from '../../infra/engines/environment.ts';
import { packageRoot } from '../../infra/home.ts';
import { arithmeticRows, writeRows } from '../../api/index.ts';
import type { PlanReport } from '../../api/index.ts';
import { commandContext } from '../context.ts';
import { createPrinter } from '../printer/printer.ts';
import { run } from './plan.ts';

const MODELS = join(packageRoot(), 'tests/golden/models');
const BASE = join(packageRoot(), 'examples/01-arithmetic-grpo/base');

let cwd: string;
let home: TemporaryHome;
beforeEach(() => {
  env = {};
  options = {};
  home = temporaryHome();
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
    `model: {path: ${BASE}}\ndata: {train_files: train.jsonl, train_batch_size: 20}\nactor: {ppo_mini_batch_size: 10}\nrollout: {n: 4}\nreward: {scorer: last_integer}\ntrainer: {total_epochs: 3}\n`,
  );
});
afterEach(() => {
  rmSync(cwd, { recursive: true });
  home.remove();
});

let env: Record<string, string> = {};
let options: Record<string, string> = {};

async function plan(...words: string[]): Promise<{ readonly exitCode: number; readonly report: PlanReport }> {
  let out = '';
  const stdout = { write: (text: string) => void (out += text) };
  const printer = createPrinter({ json: true, stdout, stderr: { write: () => undefined }, env: {} });
  const exitCode = await run(
    { words: ['toy.yaml', ...words], options: { ...options, json: true } },
    commandContext(printer, { PETREL_HOME: home.home, ...env }, cwd),
  );
  return { exitCode, report: JSON.parse(out) as PlanReport };
}

/** What a person sees on a terminal of 80 columns. */
async function screen(...words: string[]): Promise<string> {
  let out = '';
  const stream = { isTTY: true, columns: 80, write: (text: string) => void (out += text) };
  const printer = createPrinter({ json: false, stdout: stream, stderr: stream, env: { NO_COLOR: '1' } });
  await run({ words: ['toy.yaml', ...words], options }, commandContext(printer, { PETREL_HOME: home.home }, cwd));
  return out;
}

describe('petrel plan', () => {
  it('fits a terminal of 80 columns, and says one where there is one', async () => {
    const text = await screen('data.train_batch_size=10', 'trainer.total_training_steps=1', 'trainer.save_freq=1');
    const long = text.split('\n').filter((line) => line.length > 80);
    expect(long.filter((line) => !/^petrel run|\S{40}/.test(line))).toEqual([]); // commands and paths stay whole
    expect(text).toContain('1 mini-batch x 1 epoch = 1 per iteration');
    expect(text).toMatch(/run +1 iteration, 40 responses, 1 optimiser step, 1 checkpoint, 0\s+validations/);
  });

  it('says how long the run is from the rows it counted, and what the model is', async () => {
    const { exitCode, report } = await plan();
    expect(exitCode).toBe(0);
    expect(report.batch).toMatchObject({ responses: 80, optimizerSteps: 2 });
    expect(report.run).toMatchObject({ iterations: 15, optimizerSteps: 30, checkpoints: 2, validations: 0 });
    expect(report.checks.map(({ name, status }) => `${name} ${status}`)).toEqual([
      'model ok',
      'lengths warning',
      'scorer ok',
      'training rows ok',
      'store ok',
      'workers ok',
    ]);
    expect(report.checks[0]?.detail).toContain('llama, 4 layers');
    expect(report.checks[1]?.detail).toMatch(/1024 tokens, and the model was made for 64/);
    const { report: fitting } = await plan('data.max_prompt_length=48', 'data.max_response_length=16');
    expect(fitting.checks.map(({ name }) => name)).not.toContain('lengths');
  });

  it('ends with 2 and the nearest legal values when the batch cannot be cut', async () => {
    const { exitCode, report } = await plan('actor.ppo_mini_batch_size=7');
    expect(exitCode).toBe(2);
    expect(report.problems[0]).toMatchObject({ path: 'actor.ppo_mini_batch_size', expected: '5 or 10' });
  });

  it('ends with 8 and names the row that is damaged', async () => {
    const whole = readFileSync(join(cwd, 'train.jsonl'), 'utf8').split('\n', 1);
    writeFileSync(join(cwd, 'bad.jsonl'), `${whole[0]}\n{"prompt": \n`);
    const { exitCode, report } = await plan('data.train_files=bad.jsonl');
    expect(exitCode).toBe(8);
    expect(failed(report)).toEqual([
      expect.objectContaining({ name: 'training rows', detail: expect.stringContaining('bad.jsonl, row 2') }),
    ]);
  });

  it('reads the rows also when the model is not supported', async () => {
    const { exitCode, report } = await plan('data.prompt_key=question', `model.path=${MODELS}/mixtral`);
    expect(exitCode).toBe(8);
    expect(failed(report)).toEqual([
      expect.objectContaining({ name: 'model', detail: expect.stringContaining('MixtralForCausalLM') }),
      expect.objectContaining({ name: 'tokenizer' }),
      expect.objectContaining({
        name: 'training rows',
        detail: expect.stringContaining('row 1: question: expected text'),
      }),
    ]);
  });

  it('refuses a sampler that does not know the model', async () => {
    const { report } = await plan(`model.path=${MODELS}/mixtral`, 'trainer.engine=torch');
    expect(failed(report)).toContainEqual(
      expect.objectContaining({ name: 'model', detail: expect.stringContaining('MixtralForCausalLM') }),
    );
  });

  it('refuses a model of which some layers carry a state, before torch opens it', async () => {
    mkdirSync(join(cwd, 'hybrid'));
    const config = { ...publishedModels['Qwen2.5-7B']?.config, layer_types: ['conv', 'full_attention'] };
    writeFileSync(join(cwd, 'hybrid/config.json'), JSON.stringify(config));
    const { exitCode, report } = await plan('model.path=./hybrid', 'trainer.engine=torch', 'rollout.name=vllm');
    expect(exitCode).toBe(8);
    expect(failed(report)[0]).toMatchObject({ name: 'model', detail: expect.stringContaining('is of type conv') });
  });

  it('refuses the auxiliary loss of a mixture for a model that has none', async () => {
    mkdirSync(join(cwd, 'dense'));
    writeFileSync(join(cwd, 'dense/config.json'), JSON.stringify(publishedModels['Qwen2.5-7B']?.config));
    const words = ['trainer.engine=torch', 'rollout.name=vllm', 'actor.router_aux_loss_coef=0.001'];
    const { exitCode, report } = await plan('model.path=./dense', ...words);
    expect(exitCode).not.toBe(0);
    expect(failed(report)).toContainEqual(
      expect.objectContaining({ name: 'mixture', detail: expect.stringMatching(/expected a mixture.*found qwen2/) }),
    );
  });

  describe('for another machine', () => {
    const large = () => {
      mkdirSync(join(cwd, 'large'));
      writeFileSync(join(cwd, 'large/config.json'), JSON.stringify(publishedModels['DeepSeek-V3']?.config));
      return ['model.path=./large', 'trainer.engine=torch', 'rollout.name=vllm'];
    };

    it('ends with 8 when the model does not fit, and shows each device and what would do, without any weights', async () => {
      const words = large();
      options = { machine: '8xH100' };
      const { exitCode, report } = await plan(...words);
      expect(exitCode).toBe(8);
      expect(report.memory).toBeUndefined();
      expect(report.machine).toMatchObject({ fits: false, sharding: { cardsOfState: 139, cardsOfSampler: 18 } });
      expect(failed(report).find(({ name }) => name === 'memory')).toMatchObject({ code: 'TooLittleMemory' });
      const text = await screen(...words);
      expect(text).toContain('Memory on 8 x H100 of 80 GiB, estimated');
      expect(text).toMatch(/card 0 +.* of 72 GiB: it does not fit/);
      expect(text).toMatch(/not ready:.* memory/);
    });

    it('ends with 0 when it fits, with seconds of the stages', async () => {
      options = { machine: '1xH100' };
      const { exitCode, report } = await plan('trainer.engine=torch', 'rollout.name=vllm');
      expect(exitCode).toBe(0);
      expect(report.machine?.seconds?.map(({ stage }) => stage)).toEqual(['rollout', 'old log-probs', 'update']);
      expect(await screen('trainer.engine=torch', 'rollout.name=vllm')).toMatch(/card 0 +.* of 72 GiB: it fits/);
    });

    it('is refused when it is not known', async () => {
      options = { machine: '8xH101' };
      await expect(plan()).rejects.toThrow(/--machine 8xH101: expected one of/);
    });
  });

  it('ends with 8 when the models alone take more than this machine has', async () => {
    mkdirSync(join(cwd, 'large'));
    writeFileSync(join(cwd, 'large/config.json'), JSON.stringify(publishedModels['DeepSeek-V3']?.config));
    const { exitCode, report } = await plan('model.path=./large', 'trainer.engine=torch', 'rollout.name=vllm');
    expect(exitCode).toBe(8);
    expect(failed(report).find(({ name }) => name === 'memory')).toMatchObject({
      code: 'TooLittleMemory',
      detail: expect.stringMatching(/^the models that the run trains take .*, this machine has/),
    });
    expect(report.memory?.bytes).toBeGreaterThan(report.memory?.machineBytes ?? 0);
  });

  it('counts only the machine’s own part of what computes on cards', async () => {
    mkdirSync(join(cwd, 'large'));
    writeFileSync(join(cwd, 'large/config.json'), JSON.stringify(publishedModels['Qwen2.5-32B']?.config));
    const words = ['model.path=./large', 'trainer.engine=torch', 'rollout.name=vllm', 'trainer.fsdp_size=8'];
    const onProcessors = await plan(...words);
    expect(failed(onProcessors.report).map(({ name }) => name)).toContain('memory');
    const versions = { torch: '2.12.1', transformers: '5.13.1', device: 'H100' };
    for (const engine of ['torch', 'vllm'])
      writeEnvironment(home.home, engine, 'cuda', { python: '/cuda/bin/python', device: 'cuda', versions });
    const { report } = await plan(...words);
    expect(failed(report).map(({ name }) => name)).not.toContain('memory');
    expect(report.memory?.hasCards).toBe(true);
    const held = report.memory?.processes.map(({ device, role, parts }) => [device, role, Object.keys(parts)]);
    expect(held).toEqual([
      ['memory', 'trainer', ['snapshot', 'libraries', 'process']],
      ['memory', 'rollout', ['hostCopy', 'probe', 'libraries']],
    ]);
    expect(await screen(...words)).toContain('--machine 8xH100 says what each card');
  });

  it("tries GSM8K's scorer with an answer, which has its number after ####", async () => {
    writeFileSync(
      join(cwd, 'gsm8k.jsonl'),
      `${JSON.stringify({ question: 'One and one?', answer: 'Two.\n#### 2' })}\n`,
    );
    const { report } = await plan('data.train_files=gsm8k.jsonl', 'data.format=gsm8k', 'reward.scorer=gsm8k');
    expect(report.checks.find(({ name }) => name === 'scorer')).toMatchObject({
      status: 'ok',
      detail: 'gsm8k: the answer of the first row scores 1',
    });
  });

  it('does not try a scorer whose secret is not set here', async () => {
    writeFileSync(join(cwd, 'judge.py'), 'def compute_score(**_):\n    return 1\n');
    const words = [
      'reward.scorer=null',
      'reward.custom_reward_function.path=judge.py',
      'reward.reward_kwargs.key=env:JUDGE_KEY',
    ];
    const { exitCode, report } = await plan(...words);
    expect([exitCode, report.checks.find(({ name }) => name === 'scorer')]).toEqual([
      0,
      { name: 'scorer', status: 'later', detail: expect.stringContaining('JUDGE_KEY is not set here') },
    ]);
    env = { JUDGE_KEY: 'x' };
    expect((await plan(...words)).report.checks.find(({ name }) => name === 'scorer')).toMatchObject({ status: 'ok' });
  });

  it.each([
    ['the hub', 'org/tiny', () => new FakeHub(), 'HF_ENDPOINT'],
    ['ModelScope', 'modelscope:org/tiny', () => new FakeModelScope(), 'MODELSCOPE_ENDPOINT'],
  ] as const)(
    'reads config and tokenizer of a model on %s, and leaves its weights for the run',
    async (_, name, make, at) => {
      const hub = make();
      await hub.start();
      try {
        for (const file of readdirSync(BASE))
          hub.files.set(file, { bytes: readFileSync(join(BASE, file)), lfs: file.endsWith('.safetensors') });
        env = { [at]: hub.url };
        const { exitCode, report } = await plan(`model.path=${name}`);
        expect([exitCode, report.checks[0]]).toEqual([
          0,
          {
            name: 'model',
            status: 'later',
            detail: expect.stringMatching(/855k parameters; its weights \(.*\) are fetched/),
          },
        ]);
        expect(hub.log.filter((path) => /resolve.*\.safetensors$|repo .*\.safetensors$/.test(path))).toEqual([]);
      } finally {
        await hub.stop();
      }
    },
  );

  it('says what is wrong with a name on ModelScope', async () => {
    const hub = new FakeModelScope();
    await hub.start();
    try {
      env = { MODELSCOPE_ENDPOINT: hub.url };
      for (const [name, detail] of [
        ['modelscope:org/none', /has no model org\/none at master/],
        ['modelscope:org/tiny@v2', /has no model org\/tiny at v2/],
        ['modelscope:tiny', /expected modelscope:org\/name or modelscope:org\/name@revision/],
      ] as const) {
        const { exitCode, report } = await plan(`model.path=${name}`);
        expect([exitCode, failed(report)[0]]).toEqual([
          8,
          {
            name: 'model',
            status: 'failed',
            code: 'InvalidInput',
            detail: expect.stringMatching(detail),
            hint: expect.any(String),
          },
        ]);
      }
    } finally {
      await hub.stop();
    }
  });
});

const failed = ({ checks }: PlanReport) => checks.filter(({ status }) => status === 'failed');
