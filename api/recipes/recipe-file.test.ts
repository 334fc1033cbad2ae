import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadRecipe } from './recipe-file.ts';

const BASE = 'model:\n  path: ./model\ndata:\n  train_files: [a.jsonl, /data/b.jsonl]\n';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'petrel-recipe-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

function write(file: string, text: string): void {
  const path = join(folder, file);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

function refusal(file: string, ...overrides: string[]): { readonly message: string; readonly where?: string } {
  try {
    loadRecipe(file, overrides, folder);
  } catch (error) {
    return error as { readonly message: string; readonly where?: string };
  }
  throw new Error('expected a refusal');
}

describe('loadRecipe', () => {
  it('reads YAML 1.2: 1e-6 is a number, on and no are texts', () => {
    write('r.yaml', `${BASE}actor: {optim: {lr: 1e-6}}\nreward: {scorer: on}\n`);
    const { recipe } = loadRecipe('r.yaml', [], folder);
    expect([recipe.actor.optim.lr, recipe.reward.scorer]).toEqual([1e-6, 'on']);
  });

  it('names the run after the file, or after the folder of a recipe.yaml', () => {
    write('Big Run.yaml', BASE);
    write('01-toy/recipe.yaml', BASE);
    expect(loadRecipe('Big Run.yaml', [], folder).recipe.name).toBe('big-run');
    expect(loadRecipe('01-toy', [], folder).recipe.name).toBe('01-toy');
    expect(loadRecipe('01-toy', ['name=other'], folder).recipe.name).toBe('other');
  });

  it('reads paths from the folder of the file they stand in, those in overrides from the working folder', () => {
    write('sub/r.yaml', BASE);
    const { data, model } = loadRecipe('sub/r.yaml', ['data.val_files=v.jsonl'], folder).recipe;
    expect(data.train_files).toEqual([join(folder, 'sub/a.jsonl'), '/data/b.jsonl']);
    expect(data.val_files).toBe(join(folder, 'v.jsonl'));
    expect(model.path).toBe(join(folder, 'sub/model'));
  });

  it('leaves hub names, URLs and env:NAME alone', () => {
    write('r.yaml', BASE);
    const { model, store } = loadRecipe('r.yaml', ['model.path=org/name', 'store=s3://bucket/runs'], folder).recipe;
    expect([model.path, store]).toEqual(['org/name', 's3://bucket/runs']);
  });

  it('merges a recipe over the one it extends, and overrides over both; lists are replaced', () => {
    write('base.yaml', `${BASE}rollout: {n: 4, stop: [a, b]}\n`);
    write('sub/r.yaml', 'extends: ../base.yaml\nrollout: {stop: [c]}\n');
    const { recipe } = loadRecipe('sub/r.yaml', ['rollout.n=16', '~rollout.stop', 'rollout.top_k=5'], folder);
    expect([recipe.rollout.n, recipe.rollout.stop, recipe.rollout.top_k]).toEqual([16, [], 5]);
    expect(recipe.model.path).toBe(join(folder, 'model'));
  });

  it('refuses recipes that extend each other', () => {
    write('a.yaml', 'extends: b.yaml\n');
    write('b.yaml', 'extends: a.yaml\n');
    expect(refusal('a.yaml').message).toContain('a.yaml -> b.yaml -> a.yaml');
  });
});

describe('a wrong recipe', () => {
  it('is told file, line and column, with a caret and the nearest key', () => {
    write('r.yaml', `${BASE}actor:\n  optim:\n    lerning: 1\n    lr: fast\n`);
    const { message, where } = refusal('r.yaml');
    expect(where).toBe('r.yaml:7:5');
    expect(message).toContain(
      'r.yaml:8:9: actor.optim.lr: expected number > 0, got "fast"\n      lr: fast\n          ^',
    );
  });

  it('extended by another is told its own line', () => {
    write('base.yaml', `${BASE}rollout:\n  n: none\n`);
    write('r.yaml', 'extends: base.yaml\nrollout:\n  top_k: 3\n');
    expect(refusal('r.yaml').where).toBe('base.yaml:6:6');
  });

  it('points at the override when that is at fault', () => {
    write('r.yaml', `${BASE}rollout: {n: 2}\n`);
    expect(refusal('r.yaml', 'rollout.n=many').where).toBe('override rollout.n=many');
    expect(refusal('r.yaml', 'rollout.m=3').message).toContain('override rollout.m=3: rollout.m: unknown key "m"');
  });

  it('points at the section that lacks a key', () => {
    write('r.yaml', 'model:\n  path: ./m\ndata:\n  shuffle: true\n');
    expect(refusal('r.yaml')).toMatchObject({
      where: 'r.yaml:3:1',
      message: expect.stringContaining('data.train_files: is required'),
    });
  });

  it('that is no YAML, or names a key twice, is told where', () => {
    write('r.yaml', 'model: {path: [}\n');
    expect(refusal('r.yaml').where).toMatch(/^r\.yaml:1:\d+$/);
    write('twice.yaml', `${BASE}rollout:\n  n: 1\n  n: 2\n`);
    expect(refusal('twice.yaml').where).toBe('twice.yaml:7:3');
  });

  it('with a secret does not show it, neither in the file nor in an override', () => {
    const token = `hf_${'x'.repeat(30)}`;
    write('r.yaml', `${BASE}rollout:\n  stop: [${token}]\n`);
    expect(refusal('r.yaml').message).not.toContain(token);
    expect(refusal('r.yaml').message).toContain('***');
    write('ok.yaml', BASE);
    expect(JSON.stringify(refusal('ok.yaml', `model.revision=${token}`))).not.toContain(token);
  });

  it('that is not there is told what to give', () => {
    expect(refusal('nothing.yaml').message).toBe('there is no recipe nothing.yaml');
    mkdirSync(join(folder, 'empty'));
    expect(refusal('empty').message).toContain('has no recipe.yaml');
  });
});
