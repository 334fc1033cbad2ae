import { describe, expect, it } from 'vitest';
import { parseCodeTests } from './tests-of.ts';

describe('the ground truth of a program', () => {
  it('is JSON text or an object, with inputs, outputs and perhaps a function', () => {
    const tests = { inputs: ['1\n'], outputs: ['2\n'] };
    expect(parseCodeTests(JSON.stringify(tests))).toEqual({ ...tests, function: undefined });
    expect(parseCodeTests({ ...tests, fn_name: 'f' })).toEqual({ ...tests, function: 'f' });
    expect(parseCodeTests({ inputs: [['1', '2']], outputs: [['3']] })).toMatchObject({ inputs: [['1', '2']] });
    expect(parseCodeTests({ inputs: [[1, [2]]], outputs: [3], fn_name: 'f' })).toMatchObject({ outputs: [3] });
  });

  it.each([
    ['no text', undefined, 'it is undefined'],
    ['text that is no JSON', '72', 'it is number'],
    ['a sentence', 'forty-two', 'JSON'],
    ['no outputs', { inputs: ['1'] }, 'inputs or outputs is missing'],
    ['no tests', { inputs: [], outputs: [] }, 'there are no tests'],
    ['an output too few', { inputs: ['1', '2'], outputs: ['1'] }, 'there are 2 inputs and 1 outputs'],
    ['a number for a text', { inputs: ['1', '2'], outputs: ['1', 2] }, 'test 2 is neither text nor a list'],
    ['a function without a name', { inputs: ['1'], outputs: ['1'], fn_name: 5 }, 'fn_name is no text'],
  ])('is refused with %s', (_, value, message) => {
    expect(() => parseCodeTests(value)).toThrow(message);
  });
});
