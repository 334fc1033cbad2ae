/** No function of V8 or of the C library decides a bit of a result: those differ between versions and processors. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packageRoot } from '../../infra/home.ts';
import { codeOf, sourcesIn } from './sources.ts';

const ROOT = packageRoot();

/** Folders in which results are computed, or rows and scores that results depend on. */
const folders = ['core', 'models', 'rewards', 'activities', 'workers', 'workflows', 'native', 'api/data'];

/** Files that raise to powers only to wait longer after each failure. */
const waiting = ['models/hub/download.ts', 'rewards/endpoint/retry.ts', 'workers/intake.ts'];

const functions =
  'exp|expm1|log|log1p|log2|log10|pow|sin|cos|tan|asin|acos|atan|atan2|sinh|cosh|tanh|asinh|acosh|atanh|cbrt|hypot';
const ofEngine = new RegExp(`\\bMath\\.(${functions})\\b`);
const destructured = /\}\s*=\s*Math\b|\bMath\[|=\s*Math\s*[;,)]/;
/** A power of two with a written whole exponent is exact everywhere, and so are powers of bigints. */
const power = /(?<!\b2 )\*\*(?!=)|\b2 \*\* (?!-?\d+\b(?!\.))|\*\*=/;
const ofBigInts = /\b(10n|n|d|a) \*\* (BigInt\(|exponent|shift|b\b)/g;

/** What a line asks of the engine, or undefined. */
function impureIn(code: string): string | undefined {
  const numbers = code.replace(ofBigInts, '');
  return (ofEngine.exec(numbers) ?? destructured.exec(numbers) ?? power.exec(numbers))?.[0];
}

describe('results in TypeScript', () => {
  const files = folders
    .flatMap((folder) => sourcesIn(ROOT, folder))
    .filter(({ path }) => !/\.test\.ts$|test-support|\/testing\//.test(path) && !waiting.includes(path));

  it('take exp, log, powers and angles from core/math only', () => {
    expect(files.length).toBeGreaterThan(300);
    const found = files.flatMap(({ path, code }) =>
      code.split('\n').flatMap((line) => {
        const what = impureIn(line);
        return what === undefined ? [] : [`${path}: ${what.trim()} in ${line.trim()}`];
      }),
    );
    expect(found, 'use the functions of core/math').toEqual([]);
  });

  it('may not ask in a way that hides it', () => {
    const asked = ['Math.exp(x)', 'map(Math.log)', 'x ** 2', '2 ** n', '2 ** 0.5', 'x **= 2', 'const { exp } = Math;'];
    for (const line of [...asked, 'const m = Math;', 'Math[name](x)']) expect(impureIn(line), line).toBeDefined();
    for (const line of ['2 ** 53', '2 ** -24', 'Math.sqrt(x)', '10n ** BigInt(k)', 'Math.floor(x)'])
      expect(impureIn(line), line).toBeUndefined();
  });
});

describe('results in C++', () => {
  it('take exp, pow, log and angles from native/src only', () => {
    const cFunctions = new RegExp(`\\b(std::|::|__builtin_)(${functions}|exp2|sincos)f?\\s*\\(`);
    const files = readdirSync(join(ROOT, 'native/src'), { recursive: true, encoding: 'utf8' })
      .filter((path) => /\.(h|cpp)$/.test(path))
      .map((path) => ({ path, code: codeOf(readFileSync(join(ROOT, 'native/src', path), 'utf8')) }));
    expect(files.length).toBeGreaterThan(80);
    const found = files.flatMap(({ path, code }) =>
      code.split('\n').flatMap((line) => (cFunctions.test(line) ? [`${path}: ${line.trim()}`] : [])),
    );
    expect(found, 'use the functions of native/src/scalar.h').toEqual([]);
  });
});
