/**
 * Checks every `petrel …` in the texts of the product: hints, errors, help. What it tells people to type must parse.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync } from '@swc/core';
import { describe, expect, it } from 'vitest';
import type { CommandContext, CommandSpec } from '../cli/command.ts';
import { COMMANDS, NOUNS } from '../cli/commands.ts';
import { runProgram } from '../cli/program.ts';
import { nearest } from '../core/nearest.ts';
import { recipeKey, recipeSections } from '../core/recipe/index.ts';
import { packageRoot } from '../infra/home.ts';

const ROOT = packageRoot();
const product =
  /^(?:activities|api|cli|core|infra|log|models|native|rewards|setup|workers|workflows)\/(?!.*(?:\.test\.ts|\.test-support\.ts)$).*\.(?:ts|mjs)$/;

interface Mention {
  readonly file: string;
  /** The words after `petrel`, up to the end of the sentence. */
  readonly words: readonly string[];
}

const mentions = sources().flatMap((file) =>
  textsOf(readFileSync(join(ROOT, file), 'utf8')).flatMap((text) => mentionsIn(text).map((words) => ({ file, words }))),
);

function sources(): string[] {
  const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { cwd: ROOT });
  return String(listed)
    .split('\n')
    .filter((file) => product.test(file));
}

/** The texts of a source; what a template fills in is `<x>`. */
function textsOf(source: string): string[] {
  const texts: string[] = [];
  const visit = (node: unknown): void => {
    if (Array.isArray(node)) for (const one of node) visit(one);
    if (typeof node !== 'object' || node === null || Array.isArray(node)) return;
    const { type, value, quasis } = node as { type?: string; value?: unknown; quasis?: readonly { cooked?: string }[] };
    if (type === 'StringLiteral') texts.push(String(value));
    if (type === 'TemplateLiteral') texts.push((quasis ?? []).map(({ cooked = '' }) => cooked).join('<x>'));
    for (const [name, inner] of Object.entries(node)) if (name !== 'span') visit(inner);
  };
  visit(parseSync(source, { syntax: 'typescript', target: 'es2022' }));
  return texts;
}

/** A command ends with its line, its sentence, or the quotes around it. */
function mentionsIn(text: string): string[][] {
  return [...text.matchAll(/(?<![\w/.@-])petrel ([a-z][^\n]*)/g)].map((match) => {
    const [line = ''] = String(match[1])
      .replaceAll('<x>--', '<x> --')
      .replaceAll(' --<x>', '')
      .split(/[;)`"|&…]|[,:.](?:\s|$)|\s#|\s(?:or|and|then|petrel)\s/);
    return line.trim().split(/\s+/);
  });
}

function commandOf(words: readonly string[]): CommandSpec | undefined {
  return COMMANDS.find(({ name }) => name === words.slice(0, name.split(' ').length).join(' '));
}

/** Why a command is wrong; undefined for one that parses, and for a sentence about petrel. */
async function fault(words: readonly string[]): Promise<string | undefined> {
  const spec = commandOf(words);
  if (spec === undefined) return unknownCommand(words);
  const rest = words.slice(spec.name.split(' ').length);
  return unknownKey(rest) ?? (rest.length === 0 ? undefined : await parseFault(spec, rest));
}

/** `petrel trains …` is a sentence; `petrel resum …` and `petrel fleet lss` are slips. */
function unknownCommand([first = '', second = '']: readonly string[]): string | undefined {
  const names = COMMANDS.map(({ name }) => name.split(' ')[0] ?? '');
  if (Object.hasOwn(NOUNS, first)) return second === '' ? undefined : `petrel ${first} has no ${second}`;
  const near = nearest(first, names);
  const isVerb = first.length < 3 || names.some((name) => first === `${name}s`);
  return near === undefined || isVerb ? undefined : `is petrel ${near} meant?`;
}

function unknownKey(words: readonly string[]): string | undefined {
  const keys = words.flatMap((word) => /^([a-z_]+(?:\.[a-z_]+)+)=/.exec(word)?.[1] ?? []);
  const isKnown = (key: string) => recipeKey(key) !== undefined || recipeSections.some(({ path }) => path === key);
  return keys.find((key) => !isKnown(key));
}

/** Parses with the real table of commands. The words of a sentence after a command are no arguments of it. */
async function parseFault(spec: CommandSpec, given: readonly string[]): Promise<string | undefined> {
  const words = given.map((word) => word.replaceAll(/<[^>]*>/g, '1'));
  const specs = COMMANDS.map((one) => ({ ...one, load: async () => ({ run: async () => undefined }) }));
  for (;;) {
    try {
      await runProgram(specs, [...spec.name.split(' '), ...words], {
        version: '0',
        nouns: NOUNS,
        context: () => ({}) as CommandContext,
        stdout: { write: () => undefined },
      });
      return undefined;
    } catch (error) {
      const { message } = error as Error;
      const isSentence = !words.some((word) => word.startsWith('-'));
      if (isSentence && /required option/.test(message)) return undefined;
      if (!/too many arguments/.test(message) || words.length === 0) return message;
      words.pop();
    }
  }
}

async function faults(of: readonly Mention[]): Promise<string[]> {
  const found = await Promise.all(of.map(async ({ file, words }) => ({ file, words, why: await fault(words) })));
  return found.flatMap(({ file, words, why }) =>
    why === undefined ? [] : [`${file}: petrel ${words.join(' ')}: ${why}`],
  );
}

describe('commands in the texts of the product', () => {
  it('parse with the table of commands', async () => expect(await faults(mentions)).toEqual([]));

  it('are not too few', () => expect(mentions.length).toBeGreaterThan(150));

  it.each([
    'petrel resume run-1 --set fleet.budget_usd=3',
    'petrel resum run-1',
    'petrel fleet lss',
    'petrel resume run-1 fleet.budget=3',
    'petrel plan',
    'petrel logs run-1 --role',
  ])('%s would be found', async (text) => {
    const [words = []] = mentionsIn(`${text}; and more`);
    expect(
      await faults([{ file: 'x', words: words.length === 1 ? [...words, '--all', '--nothing'] : words }]),
    ).toHaveLength(1);
  });
});
