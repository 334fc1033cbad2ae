import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ArithmeticOptions, arithmeticRows, promptText } from './arithmetic.ts';

const base: ArithmeticOptions = {
  rows: 500,
  seed: 1,
  split: 'train',
  preset: 'digits',
  digits: 2,
  sft: false,
  careless: 0,
  dataSource: 'arithmetic',
  exclude: new Set(),
};
const make = (options: Partial<ArithmeticOptions> = {}) => arithmeticRows({ ...base, ...options });
const prompts = (options: Partial<ArithmeticOptions> = {}) => make(options).map(({ prompt }) => String(prompt));

describe('arithmeticRows', () => {
  it('has right answers in verl’s layout', () => {
    for (const {
      prompt,
      reward_model: { ground_truth: answer },
      extra_info: { a, b },
    } of make({ preset: 'question', digits: 3 })) {
      expect(answer).toBe(String(a + b));
      expect(prompt).toEqual([{ role: 'user', content: promptText({ a, b }, 'question') }]);
    }
  });

  it('gives the same rows for the same seed, and others for another', () => {
    expect(make()).toEqual(make());
    expect(prompts({ seed: 2 })).not.toEqual(prompts());
  });

  it('makes longer files by adding rows', () => {
    expect(make({ rows: 700 }).slice(0, 500)).toEqual(make());
  });

  it('never puts a pair of operands on both sides of the border, in either order, whatever the seeds', () => {
    const validation = new Set(prompts({ split: 'validation', rows: 900 }).flatMap((text) => [text, swapped(text)]));
    fc.assert(
      fc.property(fc.nat(), (seed) => {
        expect(prompts({ seed, rows: 300 }).filter((text) => validation.has(text))).toEqual([]);
      }),
      { numRuns: 30 },
    );
  });

  it('uses every training question once before any comes again', () => {
    const all = prompts({ digits: 1, rows: 90 });
    expect(new Set(all).size).toBe(90);
    expect(new Set(prompts({ digits: 1, rows: 400 })).size).toBeLessThan(100);
  });

  it('has no validation question twice, and says how many there are', () => {
    expect(new Set(prompts({ split: 'validation', rows: 900 })).size).toBe(900);
    expect(() => make({ split: 'validation', rows: 2000 })).toThrow(/there are only \d+ validation questions/);
  });

  it('leaves out what is excluded, and adds responses for sft', () => {
    const exclude = new Set(prompts({ rows: 100 }));
    expect(prompts({ exclude }).some((text) => exclude.has(text))).toBe(false);
    const [row] = make({ sft: true, rows: 1 });
    expect(row?.response).toBe(row?.reward_model.ground_truth);
  });

  it('says so when everything is excluded', () => {
    const exclude = new Set(prompts({ digits: 1, rows: 400 }));
    expect(() => make({ digits: 1, rows: 1, exclude })).toThrow(/only 0 train questions/);
  });
});

function swapped(text: string): string {
  const [a, b] = text.replace('=', '').split('+');
  return `${b}+${a}=`;
}
