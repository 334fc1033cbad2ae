/** A C++ exception becomes a JavaScript error on every path; the process goes on and computes. */
import { describe, expect, it } from 'vitest';
import { linesOf } from './testing/child.ts';

const computed = 'computed 29';
/** AddressSanitizer ends a process that asks for too much, so that there is no exception to test. */
const sanitized = (process.env['LD_PRELOAD'] ?? '').includes('libasan');

describe('the process survives', () => {
  it('an environment variable with an unknown value, and says which values are known', () => {
    const lines = linesOf('failing-main.ts', {
      args: ['a setting that is unknown'],
      env: { PETREL_ISA: 'nonsense' },
    });
    expect(new Set(lines)).toEqual(
      new Set([
        'error: the native engine cannot run here: PETREL_ISA=nonsense is unknown; it may be avx2, avx512, avx512_bf16 or amx',
      ]),
    );
  });

  it('an exception inside work that is shared out, whichever thread throws it', () => {
    const lines = linesOf('failing-main.ts', {
      args: ['kernels that refuse, on every thread'],
      env: { PETREL_ISA: 'avx2' },
    });
    expect(lines).toHaveLength(301);
    expect(new Set(lines)).toEqual(
      new Set(['error: compute bf16 needs AVX512_BF16; the path in use is avx2', computed]),
    );
  });

  it('a system that starts no more threads, and names the one that failed', () => {
    const [error, ...rest] = linesOf('failing-main.ts', { args: ['no memory for threads'] });
    expect(error).toMatch(/^error: cannot start thread \d+ of 1000: /);
    expect(rest).toEqual([computed]);
  });

  it('a model that does not fit into memory, and says how much it needs', () => {
    const [error, ...rest] = linesOf('failing-main.ts', { args: ['no memory for a model'] });
    expect(error).toMatch(/^error: cannot map \d+ MiB of memory$/);
    expect(rest).toEqual([computed]);
  });

  it.skipIf(sanitized)('a table that does not fit into memory, and names the function', () => {
    const [error, ...rest] = linesOf('failing-main.ts', { args: ['no memory for a table'] });
    expect(error).toMatch(/^error: generatorOpen: out of memory/);
    expect(rest).toEqual([computed]);
  });
});
