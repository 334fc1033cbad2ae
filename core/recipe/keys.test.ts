import { describe, expect, it } from 'vitest';
import { explain } from './explain.ts';
import { recipeJsonSchema } from './json-schema.ts';
import { recipeKey, recipeKeys } from './keys.ts';
import { parseRecipe } from './parse.ts';
import { valueOf } from './changes.ts';
import { MOVED_KEYS } from './verl.ts';

const recipe = parseRecipe({ model: { path: 'm' }, data: { train_files: 'a' } });

describe('the table of keys', () => {
  it('documents every key in one line that ends with a full stop', () => {
    for (const key of recipeKeys) expect(key.doc, key.path).toMatch(/^[^\n]+[.…)]$/);
  });

  it('gives the same defaults as a parsed recipe', () => {
    for (const key of recipeKeys.filter((entry) => !entry.required))
      expect(valueOf(recipe, key.path), key.path).toEqual(key.default);
  });

  it('covers every value of a resolved recipe', () => {
    const covered = new Set(recipeKeys.map((entry) => entry.path));
    for (const path of leafPaths(recipe, '', covered)) expect(covered).toContain(path);
  });

  it('knows the new places of verl’s moved keys', () => {
    for (const path of Object.values(MOVED_KEYS)) expect(() => explain(path)).not.toThrow();
  });

  it('gives the type in words', () => {
    expect(recipeKey('rollout.n')?.type).toBe('integer >= 1');
    expect(recipeKey('deterministic')?.type).toBe('true or false, or replay');
    expect(recipeKey('actor.optim.betas')?.type).toBe('list of 2');
  });
});

describe('explain', () => {
  it('shows a section with its keys, and finds the nearest path', () => {
    expect(explain('actor.optim')).toMatchObject({ type: 'section' });
    expect(() => explain('actor.optim.l')).toThrow(expect.objectContaining({ hint: 'did you mean actor.optim.lr?' }));
    expect(() => explain('adv_estimator')).toThrow(
      expect.objectContaining({ hint: 'did you mean algorithm.adv_estimator?' }),
    );
  });
});

describe('the JSON Schema', () => {
  it('is draft 7, refuses unknown keys, and describes each key with unit and change class', () => {
    const schema = recipeJsonSchema() as {
      readonly $schema: string;
      readonly additionalProperties: boolean;
      readonly properties: Record<string, { readonly properties?: Record<string, { readonly description?: string }> }>;
    };
    expect(schema.$schema).toContain('draft-07');
    expect(schema.additionalProperties).toBe(false);
    expect(schema.properties['data']?.properties?.['train_batch_size']?.description).toContain(
      '[prompts] (on resume: ask)',
    );
  });
});

function leafPaths(value: unknown, path: string, stopAt: ReadonlySet<string>): string[] {
  if (stopAt.has(path) || typeof value !== 'object' || value === null) return [path];
  return Object.entries(value).flatMap(([name, item]) =>
    leafPaths(item, path === '' ? name : `${path}.${name}`, stopAt),
  );
}
