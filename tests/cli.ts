/** Runs commands in tests: each has a separate home, and returns its output and its exit code. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { COMMANDS } from '../cli/commands.ts';
import { commandContext } from '../cli/context.ts';
import { createPrinter } from '../cli/printer/printer.ts';
import { runProgram } from '../cli/program.ts';
import type { Store } from '../core/ports/store.ts';
import { openStore } from '../infra/store/open.ts';
import { defaultStore } from '../infra/store/places.ts';
import { builtOwner } from './run-builder.ts';

export interface CommandResult {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  /** `out`, parsed. */
  json<T>(): T;
}

export interface CliHome {
  readonly home: string;
  /** The default store. */
  store(): Promise<Store>;
  /** Rejects with the error of the command. */
  petrel(...words: string[]): Promise<CommandResult>;
  remove(): void;
}

/** A PETREL_HOME without a stack. */
export function cliHome(): CliHome {
  const home = mkdtempSync(join(tmpdir(), 'petrel-cli-'));
  writeFileSync(join(home, 'stack-name'), `${builtOwner}\n`); // runs made by buildRun belong to this stack
  return {
    home,
    store: () => openStore(defaultStore(home)),
    petrel: (...words) => runWords(home, words),
    remove: () => rmSync(home, { recursive: true, force: true }),
  };
}

/** Runs a command with this home, in the process of the test. */
export async function runWords(home: string, words: readonly string[]): Promise<CommandResult> {
  const texts = { out: '', err: '' };
  const stdout = { columns: 80, write: (text: string) => void (texts.out += text) };
  const stderr = { columns: 80, write: (text: string) => void (texts.err += text) };
  const env = { ...process.env, PETREL_HOME: home, NO_COLOR: '1' };
  const code = await runProgram(COMMANDS, words, {
    version: '0',
    nouns: {},
    stdout,
    context: (json) => commandContext(createPrinter({ json, stdout, stderr, env }), env, home),
  });
  return { code, ...texts, json: <T>() => JSON.parse(texts.out) as T };
}
