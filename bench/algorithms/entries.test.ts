/** Every recipe of examples/10-algorithms can be run and has an entry. No run is started here. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { metricInfo } from '../../core/metrics.ts';
import { batchArithmetic } from '../../core/recipe/arithmetic.ts';
import { packageRoot } from '../../infra/home.ts';
import { documentPath } from './document.ts';
import { ENTRIES } from './entries.ts';
import { fewestSteps } from './judge.ts';
import { algorithmRecipes, resolved } from './recipes.ts';

const recipes = algorithmRecipes();

/** The text as a table of the page shows it. */
const inCell = (text: string): string => text.replaceAll('|', '\\|');

describe('the recipe', () => {
  it.each(recipes)('$name can be run, or waits for a key and is refused', ({ file, entry }) => {
    const found = resolved(file);
    if (entry?.waitsFor !== undefined) expect(found).toHaveProperty('refused');
    else expect(found).toHaveProperty('recipe');
  });

  it.each(recipes)('$name takes four or more optimiser steps on a batch', ({ file }) => {
    const found = resolved(file);
    if ('recipe' in found && found.recipe.kind === 'rl')
      expect(batchArithmetic(found.recipe).optimizerSteps).toBeGreaterThanOrEqual(fewestSteps);
  });
});

describe('the entries', () => {
  it('are those of the recipes', () => {
    expect(Object.keys(ENTRIES).sort()).toEqual(recipes.map(({ name }) => name));
  });

  it('name metrics that runs report', () => {
    const metrics = Object.values(ENTRIES).flatMap(({ mechanism, result }) => [
      ...mechanism.map(({ metric }) => metric),
      ...(result === undefined ? [] : [result.metric]),
    ]);
    expect(metrics.filter((name) => metricInfo(name) === undefined && !name.startsWith('record/'))).toEqual([]);
  });

  it('have the page that the last table wrote', () => {
    const page = readFileSync(join(packageRoot(), documentPath), 'utf8');
    const missing = recipes.filter(
      ({ name, entry }) =>
        entry?.waitsFor === undefined &&
        !(
          page.includes(`(../../examples/10-algorithms/${name}.yaml)`) && page.includes(inCell(String(entry?.formula)))
        ),
    );
    expect(
      missing.map(({ name }) => name),
      'npm run algorithms',
    ).toEqual([]);
  });
});

it('refuses the name of a recipe that is not there', () => {
  expect(() => algorithmRecipes(['nothing'])).toThrow('there is no recipe nothing');
});
