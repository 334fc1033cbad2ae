/** Loads the compiled file of a user's own module: one file, which imports nothing but types and `node:` modules. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { InvalidInputError } from '../../core/errors.ts';
import { nearest } from '../../core/nearest.ts';
import type { OwnModuleKind } from '../../core/recipe/own-modules.ts';
import { OWN_ESTIMATOR_NEEDS, OWN_LOSS_NEEDS } from '../../core/rl/names.ts';
import type { OwnAdvantageEstimator, OwnPolicyLoss, OwnSampler } from '../../core/rl/own/types.ts';
import type { OwnModuleFacts, OwnModuleFailure, OwnModuleThreadData } from './protocol.ts';

export interface LoadedModule {
  readonly module: OwnPolicyLoss | OwnAdvantageEstimator | OwnSampler;
  readonly facts: OwnModuleFacts;
}

/** @throws InvalidInputError for exports of a wrong form; whatever the module throws while it is loaded. */
export async function loadOwnModule({ kind, fileName, source }: OwnModuleThreadData): Promise<LoadedModule> {
  const folder = await mkdtemp(join(tmpdir(), 'petrel-own-'));
  try {
    // A file, because stack traces of a data URL have no line of the source.
    const path = join(folder, `${fileName}.mjs`);
    await writeFile(path, source);
    const exported = (await import(pathToFileURL(path).href)) as Readonly<Record<string, unknown>>;
    return checked(kind, exported);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function checked(kind: OwnModuleKind, exported: Readonly<Record<string, unknown>>): LoadedModule {
  const module = exported[kind] ?? exported['default'];
  if (typeof module !== 'object' || module === null) {
    const names = Object.keys(exported).join(', ') || 'nothing';
    throw new InvalidInputError(`expected an export named ${kind}, or a default one, got ${names}`, {
      hint: `export const ${kind} = { ${kind === 'loss' ? "scope: 'token', " : ''}${kind === 'sampler' ? '' : 'needs: [], '}compute(…) { … } }`,
    });
  }
  const { compute, needs, deterministic, scope, straightThrough } = module as Readonly<Record<string, unknown>>;
  if (typeof compute !== 'function') throw wrong(kind, 'compute', 'a function', compute);
  if (deterministic !== undefined && typeof deterministic !== 'boolean')
    throw wrong(kind, 'deterministic', 'true or false', deterministic);
  if (kind === 'sampler')
    return { module: module as OwnSampler, facts: { needs: [], deterministic: deterministic === true } };
  const known = kind === 'loss' ? OWN_LOSS_NEEDS : OWN_ESTIMATOR_NEEDS;
  const facts = { needs: needsOf(kind, needs, known), deterministic: deterministic === true };
  const loaded = module as OwnPolicyLoss | OwnAdvantageEstimator;
  if (kind === 'estimator') return { module: loaded, facts };
  if (scope !== 'token' && scope !== 'sequence') throw wrong(kind, 'scope', "'token' or 'sequence'", scope);
  if (straightThrough === undefined) return { module: loaded, facts };
  if (straightThrough !== true && (typeof straightThrough !== 'string' || straightThrough === ''))
    throw wrong(kind, 'straightThrough', 'true, or what it is about in words', straightThrough);
  return { module: loaded, facts: { ...facts, straightThrough } };
}

function needsOf<T extends string>(kind: OwnModuleKind, needs: unknown, known: readonly T[]): T[] {
  if (!Array.isArray(needs)) throw wrong(kind, 'needs', 'a list', needs);
  return needs.map((need: unknown) => {
    const found = known.find((name) => name === need);
    if (found !== undefined) return found;
    const near = nearest(String(need), known);
    throw new InvalidInputError(`${kind}.needs: expected some of ${known.join(', ')}, got ${String(need)}`, {
      hint: near === undefined ? `no other quantities are given to a ${kind}` : `did you mean ${near}?`,
    });
  });
}

const wrong = (kind: OwnModuleKind, field: string, expected: string, received: unknown) =>
  new InvalidInputError(
    `${kind}.${field}: expected ${expected}, got ${received === undefined ? 'nothing' : String(received)}`,
  );

/** What is told of an error, with the innermost line of the module. */
export function failureOf(error: unknown, fileName: string): OwnModuleFailure {
  if (!(error instanceof Error)) return { reason: `it threw ${String(error)}` };
  if (error instanceof InvalidInputError)
    return { reason: error.message, ...(error.hint !== undefined && { hint: error.hint }) };
  const [missing] = /(?<=Cannot find (?:module|package) ')[^']*/.exec(error.message) ?? [];
  if (missing !== undefined) {
    const reason = `it imports ${missing.slice(missing.lastIndexOf('/') + 1)}`;
    return { reason, hint: 'a module of your own is one file; it can import types, and modules of node:' };
  }
  const frames = (error.stack ?? '').split('\n');
  const escaped = fileName.replace(/[.*+?^$()|[\]\\{}]/g, '\\$&');
  const place = frames.flatMap((frame) => new RegExp(`/(${escaped}):(\\d+:\\d+)\\)?$`).exec(frame) ?? []);
  const [, name, position] = place;
  return {
    reason: `${error.name}: ${error.message}`,
    ...(name !== undefined && position !== undefined && { place: `${name}:${position}` }),
  };
}
