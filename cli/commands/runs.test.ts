/** Commands that read runs, over a folder store with runs written by the real functions. No server is up. */
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { keys } from '../../core/records/keys.ts';
import type { LogLine } from '../../core/wire/messages.ts';
import { openStore } from '../../infra/store/open.ts';
import { rememberStore } from '../../infra/store/places.ts';
import { cliHome } from '../../tests/cli.ts';
import { buildRun } from '../../tests/run-builder.ts';
import type { BuiltRun } from '../../tests/run-builder.ts';
import type { MachineStatus, MetricRow, RunStatus, RunSummary, SampleView } from '../../api/index.ts';

const cli = cliHome();
let older: BuiltRun;
let newer: BuiltRun;
let elsewhere: BuiltRun;

beforeAll(async () => {
  const store = await cli.store();
  older = await buildRun(store, { name: 'toy', done: 4, evaluations: [0, 4], checkpoints: [2, 4] });
  const reason = {
    code: 'JobConvicted',
    message: 'rollout-1 ended 2 workers while it ran alone',
    hint: 'petrel logs',
    where: 'local-1',
  };
  newer = await buildRun(store, {
    name: 'toy',
    createdAt: new Date('2026-02-03T04:05:06Z'),
    done: 2,
    evaluations: [0, 2],
    checkpoints: [2],
    wrongAnswer:
      ' \u001b[31mseven\u001b[0m and many more words of an answer that is much too long for one line of a terminal',
    status: { state: 'paused', reason },
  });
  const other = join(cli.home, 'other-store');
  elsewhere = await buildRun(await openStore(other), { name: 'learn', kind: 'sft', done: 1, iterations: 3 });
  for (const folder of [other, join(cli.home, 'gone')]) {
    mkdirSync(folder, { recursive: true });
    rememberStore(cli.home, pathToFileURL(folder).href);
  }
  rmSync(join(cli.home, 'gone'), { recursive: true });
});
afterAll(() => cli.remove());

describe('ls', () => {
  it('lists the runs of all stores, newest first, and tells of a store that is gone', async () => {
    const { out, err } = await cli.petrel('ls');
    expect(out.indexOf(newer.runId)).toBeGreaterThan(0);
    expect(out.indexOf(newer.runId)).toBeLessThan(out.indexOf(older.runId));
    expect(out).toContain(elsewhere.runId);
    expect(out).toMatch(/4\/4 .*0\.500/);
    expect(err).toContain('gone');
  });

  it('prints the bare array, limited and filtered', async () => {
    const runs = (await cli.petrel('ls', '--json')).json<RunSummary[]>();
    expect(runs.map(({ state, iteration, iterations, accuracy }) => [state, iteration, iterations, accuracy])).toEqual([
      ['paused', 2, 4, 0.375],
      ['completed', 4, 4, 0.5],
      ['running', 1, 3, null],
    ]);
    expect((await cli.petrel('ls', '--json', '-n', '1')).json<RunSummary[]>()).toHaveLength(1);
    expect(
      (await cli.petrel('ls', '--json', '--state', 'running')).json<RunSummary[]>().map(({ name }) => name),
    ).toEqual(['learn']);
    await expect(cli.petrel('ls', '--state', 'runing')).rejects.toMatchObject({
      code: 'InvalidInput',
      hint: 'did you mean running?',
    });
  });
});

describe('the word for a run', () => {
  it('is a full id, or a name that means its newest run', async () => {
    expect((await cli.petrel('status', 'toy', '--json')).json<RunStatus>().runId).toBe(newer.runId);
    expect((await cli.petrel('status', older.runId, '--json')).json<RunStatus>().runId).toBe(older.runId);
  });

  it('that fits none gets the nearest one', async () => {
    await expect(cli.petrel('status', 'tyo')).rejects.toMatchObject({ code: 'NotFound', hint: 'did you mean toy?' });
    await expect(cli.petrel('logs', 'quite-different')).rejects.toMatchObject({
      code: 'NotFound',
      hint: 'petrel ls lists the runs',
    });
    const empty = cliHome();
    await expect(empty.petrel('metrics', 'toy')).rejects.toMatchObject({
      code: 'NotFound',
      hint: expect.stringContaining('petrel run'),
    });
    empty.remove();
  });
});

describe('status', () => {
  it('of a run has position, validation, checkpoint and profile, with the stack down', async () => {
    const status = (await cli.petrel('status', older.runId, '--json')).json<RunStatus>();
    expect(status).toMatchObject({
      name: 'toy',
      kind: 'rl',
      state: 'completed',
      wish: 'run',
      iteration: 4,
      iterations: 4,
      policyVersion: 4,
      accuracy: 0.5,
      term: 1,
      stack: 'down',
      workers: [],
      latestCheckpoint: { iteration: 4 },
      profile: { engine: 'native', device: 'avx2', deterministic: true },
    });
    expect(status).not.toHaveProperty('reason');
    expect(status).not.toHaveProperty('stage');
  });

  it('says why a run is paused and what to type', async () => {
    const { out } = await cli.petrel('status', newer.runId);
    expect(out).toMatch(/state +paused/);
    expect(out).toContain('JobConvicted: rollout-1 ended 2 workers');
    expect(out).toContain('hint: petrel logs');
    expect(out).toContain(`next: petrel resume ${newer.runId}`);
  });

  it('says that a run waits for the stack', async () => {
    expect((await cli.petrel('status', 'learn', '--json')).json<RunStatus>().queued).toContain('petrel up');
  });

  it('without a run shows the stack and what is unfinished', async () => {
    const status = (await cli.petrel('status', '--json')).json<MachineStatus>();
    expect(status.stack.state).toBe('down');
    expect(status.runs.map(({ runId }) => runId)).toEqual([newer.runId, elsewhere.runId]);
    const { out } = await cli.petrel('status');
    expect(out).toContain('down');
    expect(out).toContain('JobConvicted');
    expect(out).not.toContain(older.runId);
  });

  it('--watch ends with a run that has ended', async () => {
    expect((await cli.petrel('status', older.runId, '--watch')).out).toContain('completed');
  });
});

describe('metrics', () => {
  it('joins batch, update and validation by iteration', async () => {
    const rows = (await cli.petrel('metrics', older.runId, '--json')).json<MetricRow[]>();
    expect(rows.map(({ iteration }) => iteration)).toEqual([0, 1, 2, 3, 4]);
    expect(rows[0]?.metrics).toEqual({ 'val/accuracy': 0.25 });
    expect(rows[4]).toMatchObject({
      term: 1,
      metrics: { 'critic/score/mean': 0.5, 'actor/grad_norm': 4, 'val/accuracy': 0.5 },
      timings: { 'timing_s/update': 0.5, 'timing_s/rollout': 0.25, 'val_timing_s/rollout': 0.125 },
    });
  });

  it('shows chosen names of the newest iterations', async () => {
    const { out } = await cli.petrel('metrics', older.runId, 'actor/grad_norm', 'timing_s/update', '--last', '2');
    expect(
      out
        .trim()
        .split('\n')
        .map((line) => line.trim().split(/ +/)),
    ).toEqual([
      ['ITERATION', 'actor/grad_norm', 'timing_s/update'],
      ['3', '3', '0.5'],
      ['4', '4', '0.5'],
    ]);
  });

  it('knows the nearest name, and lists all with unit and doc', async () => {
    await expect(cli.petrel('metrics', 'toy', 'actor/grad_nrom')).rejects.toMatchObject({
      code: 'InvalidInput',
      hint: 'did you mean actor/grad_norm?',
    });
    const listed = (await cli.petrel('metrics', 'toy', '--list', '--json')).json<
      { name: string; unit: string; doc: string }[]
    >();
    expect(listed.find(({ name }) => name === 'timing_s/update_actor')).toMatchObject({
      unit: 's',
      doc: expect.stringContaining('Forward'),
    });
  });
});

describe('metrics in a terminal', () => {
  it('are found by a pattern; a pattern that fits nothing is refused', async () => {
    const { out } = await cli.petrel('metrics', older.runId, 'actor/*', 'critic/score/mea?', '--last', '1');
    expect(out.split('\n')[0]?.trim().split(/ +/)).toEqual([
      'ITERATION',
      'actor/grad_norm',
      'actor/lr',
      'critic/score/mean',
    ]);
    await expect(cli.petrel('metrics', older.runId, 'actr/*')).rejects.toMatchObject({ code: 'InvalidInput' });
  });

  it('show the seconds of an older petrel under the present names too', async () => {
    const { out } = await cli.petrel('metrics', older.runId, 'timing_s/gen', 'timing_s/rollout', '--last', '1');
    expect(out.trim().split('\n')[1]?.trim().split(/ +/)).toEqual(['4', '0.25', '0.25']);
    const { out: list } = await cli.petrel('metrics', older.runId, '--list');
    expect(list).toContain('timing_s/gen');
    expect(list).not.toContain('timing_s/rollout ');
  });

  it('--plot draws a curve of each, and the usual ones without a name', async () => {
    const { out } = await cli.petrel('metrics', older.runId, 'actor/grad_norm', '--plot');
    expect(out).toMatch(/^actor\/grad_norm\n4 ┤ +████\n/);
    expect((await cli.petrel('metrics', older.runId, '--plot')).out).toMatch(
      /critic\/score\/mean\n[\s\S]*val\/accuracy\n/,
    );
    await expect(cli.petrel('metrics', older.runId, '--plot', '-f')).rejects.toMatchObject({ code: 'InvalidInput' });
  });

  it('-f prints each iteration once and ends with the run', async () => {
    const { out } = await cli.petrel('metrics', older.runId, 'actor/grad_norm', '-f', '-n', '3');
    expect(
      out
        .trim()
        .split('\n')
        .map((line) => line.trim().split(/ +/)[0]),
    ).toEqual(['ITERATION', '2', '3', '4']);
  });
});

describe('samples', () => {
  it('are decoded with reward, advantage, stop reason and what failed', async () => {
    const samples = (await cli.petrel('samples', older.runId, '--iteration', '3', '--json')).json<SampleView[]>();
    expect(samples).toHaveLength(4);
    expect(samples[0]).toMatchObject({
      iteration: 3,
      draw: 4,
      row: 0,
      sample: 0,
      prompt: 'What is 2 + 3?',
      response: ' 5',
      reward: 1,
      advantage: 1,
      stopReason: 'stop',
      fate: 'trained',
      groundTruth: '5',
      columns: { acc: 1, pred: '5' },
    });
    expect(samples[1]).toMatchObject({ response: ' 7', reward: 0, advantage: -1, stopReason: 'length' });
    expect(samples[3]).toMatchObject({
      prompt: 'What is 4 + 4?',
      reward: null,
      reason: expect.stringContaining('longer than 5 s'),
    });
    expect(samples[3]).not.toHaveProperty('advantage');
  });

  it('read in a terminal: a prompt once, lines of its width, nothing that moves the cursor', async () => {
    const { out, err } = await cli.petrel('samples', newer.runId);
    expect(out.split('What is 2 + 3?')).toHaveLength(2);
    expect(out).toContain('reward 1 · advantage +1');
    expect(out).toContain('acc 1 · pred 5');
    expect(out).toContain('cut at the limit');
    expect(out).toContain('␛[31mseven');
    expect(out).not.toContain('\u001b');
    expect(Math.max(...out.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
    expect(err).toContain('iteration 2: 4 of 4 samples, mean reward 0.667');
  });

  it('can be those of a validation, or of one draw', async () => {
    const validation = (await cli.petrel('samples', older.runId, '--validation', '--json')).json<SampleView[]>();
    expect(validation[0]).toMatchObject({ iteration: 4, reward: 1 });
    expect(validation[0]).not.toHaveProperty('advantage');
    const draw = (await cli.petrel('samples', older.runId, '--prompt', '7', '--limit', '1', '--json')).json<
      SampleView[]
    >();
    expect(draw.map((sample) => [sample.draw, sample.sample])).toEqual([[7, 0]]);
    await expect(cli.petrel('samples', older.runId, '--iteration', '9')).rejects.toMatchObject({
      code: 'NotFound',
      hint: 'there are: 1, 2, 3, 4',
    });
    await expect(cli.petrel('samples', older.runId, '--validation', '-i', '2')).rejects.toMatchObject({
      hint: 'there are: 0, 4',
    });
  });

  it('of supervised runs are the rows they learn', async () => {
    const samples = (await cli.petrel('samples', 'learn', '--json')).json<SampleView[]>();
    expect(samples.map(({ prompt, reward }) => [prompt, reward])).toContainEqual(['What is 2 + 3?', null]);
  });
});

describe('logs', () => {
  const line = (second: number, level: LogLine['level'], text: string) =>
    `${JSON.stringify({ v: 1, at: `2026-01-02T03:04:0${second}.000Z`, level, source: 'control', text })}\n`;
  const write = async (chunk: string, lines: string) =>
    (await cli.store()).put(keys.log(older.runId, chunk), new TextEncoder().encode(lines));

  const localTime = (second: number) => new Date(`2026-01-02T03:04:0${second}.000Z`).toTimeString().slice(0, 8);

  it('are the newest stored lines in order, at local times, harmless to a terminal', async () => {
    await write(
      '2026-01-02T030401.000Z-1-000000.jsonl',
      line(1, 'info', 'first') + line(2, 'warn', 'second \u001b[2J'),
    );
    await write('2026-01-02T030403.000Z-1-000001.jsonl', `${line(3, 'info', 'third')}damaged\n`);
    const { out } = await cli.petrel('logs', older.runId, '-n', '2');
    expect(out.trim().split('\n')).toEqual([
      `${localTime(2)}.000 control: warn second ␛[2J`,
      `${localTime(3)}.000 control: third`,
    ]);
    expect((await cli.petrel('logs', older.runId, '--json')).json<LogLine[]>().map(({ text }) => text)).toEqual([
      'first',
      'second \u001b[2J',
      'third',
    ]);
  });

  it('-f ends with the run, after the lines that were stored last', async () => {
    setTimeout(() => void write('2026-01-02T030409.000Z-1-000002.jsonl', line(9, 'info', 'last words')), 300);
    const { out } = await cli.petrel('logs', older.runId, '-f');
    expect(out.match(/first|second|third|last words/g)).toEqual(['first', 'second', 'third', 'last words']);
  });

  it('may be none', async () => {
    const { out, err } = await cli.petrel('logs', 'learn');
    expect(out.trim()).toBe('');
    expect(err).toContain('no log lines yet');
  });
});
