import { describe, expect, it } from 'vitest';
import type { Dataset } from '../../models/dataset-rows.ts';
import type { BatchTokenizer } from '../../models/tokenizer.ts';
import { singleTurn, stopReasons } from '../../models/trajectories.ts';
import type { Trajectories } from '../../models/trajectories.ts';
import type { ScoreOutcome, ScorerHost } from '../../rewards/host/scorer-host.ts';
import { inputsOf, scorerRows, Scoring } from './scoring.ts';

const trajectories: Trajectories = {
  weightsDigest: 'w',
  drawOffsets_G1: Int32Array.of(0, 1, 2),
  draw_S: Int32Array.of(40, 41),
  row_S: Int32Array.of(0, 1),
  promptTokens: Int32Array.of(5, 6),
  promptOffsets_P1: Int32Array.of(0, 1, 2),
  prompt_S: Int32Array.of(0, 1),
  responseTokens_T: Int32Array.of(7, 8),
  responseOffsets_S1: Int32Array.of(0, 1, 2),
  logProbs_T: Float32Array.of(-1, -1),
  samplingLogProbs_T: Float32Array.of(-1, -1),
  ...singleTurn(Int32Array.of(0, 1, 2), Int32Array.of(0, 0), 1),
  stopReason_S: Uint8Array.of(1, 1),
};
const tokenizer = { decodeBatch: async (all: readonly Int32Array[]) => all.map(String) } as unknown as BatchTokenizer;
const row = { dataSource: 'sums', prompt: '3+4=', groundTruth: '4' };

/** Throws outside its one row, as every dataset does. */
const oneRow = {
  count: 1,
  facts: async (rows: readonly number[]) =>
    rows.map((wanted) => {
      if (wanted !== 0) throw new RangeError(`row ${wanted} of 1`);
      return row;
    }),
} as unknown as Dataset;

describe('the input of a scorer', () => {
  it('has the text of the response and the facts of its row', async () => {
    const rows = await scorerRows(oneRow, Int32Array.of(0));
    expect(await inputsOf({ trajectories, rows, tokenizer }, [0])).toEqual([
      { dataSource: 'sums', solutionStr: '7', groundTruth: '4', extraInfo: undefined },
    ]);
  });

  it('is not made of a row outside the dataset: the scorer would be asked without the ground truth', async () => {
    await expect(scorerRows(oneRow, trajectories.row_S)).rejects.toThrow('row 1 of 1');
    const rows = new Map([[0, row]]);
    await expect(inputsOf({ trajectories, rows, tokenizer }, [0, 1])).rejects.toThrow(RangeError);
  });
});

describe('scoring in lists', () => {
  /** Three draws of two samples. */
  const six: Trajectories = {
    ...trajectories,
    drawOffsets_G1: Int32Array.of(0, 2, 4, 6),
    draw_S: Int32Array.of(0, 0, 1, 1, 2, 2),
    row_S: new Int32Array(6),
    stopReason_S: Uint8Array.of(1, 1, 1, stopReasons.poison, 1, 1),
  };
  const samples = async (indices: readonly number[]) =>
    indices.map((b) => ({ dataSource: '', solutionStr: String(b), groundTruth: undefined }));
  const good: ScoreOutcome = { ok: true, score: 1, columns: {} };
  const late: ScoreOutcome = { ok: false, code: 'timeout', reason: 'late' };

  it('asks once for each prompt, without samples that have no response, and again for all of a prompt', async () => {
    const calls: string[] = [];
    const score: ScorerHost['score'] = async (inputs) => {
      const call = inputs.map(({ solutionStr }) => solutionStr).join(' ');
      calls.push(call);
      return inputs.map(() => (call === '4 5' && calls.length <= 3 ? late : good));
    };
    const host: ScorerHost = { ready: async () => {}, score, close: async () => {} };
    const scoring = new Scoring({ host, trajectories: six, samples, print: () => {}, signal: undefined, lists: true });
    const first = await scoring.all(() => {});
    expect(calls).toEqual(['0 1', '2', '4 5']);
    expect(first.map(({ ok }) => ok)).toEqual([true, true, true, false, false, false]);
    expect((await scoring.withoutAccidents(first, '')).map(({ ok }) => ok)).toEqual([
      true,
      true,
      true,
      false,
      true,
      true,
    ]);
    expect(calls.slice(3)).toEqual(['4 5']);
  });
});

describe('scoring', () => {
  it('fails when the host returns fewer outcomes than samples; such a sample is not called poison', async () => {
    const only: ScoreOutcome = { ok: true, score: 1, columns: {} };
    const host: ScorerHost = { ready: async () => {}, score: async () => [only], close: async () => {} };
    const samples = async (indices: readonly number[]) =>
      indices.map(() => ({ dataSource: '', solutionStr: '', groundTruth: undefined, extraInfo: undefined }));
    const scoring = new Scoring({ host, trajectories, samples, print: () => {}, signal: undefined });
    await expect(scoring.all(() => {})).rejects.toThrow('no element 1 in a list of 1');
  });
});
