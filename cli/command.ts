/** A command as data, and what its module gets. */
import type { ApiContext } from '../api/index.ts';
import type { ExitCode } from './exit-codes.ts';
import type { Printer } from './printer/printer.ts';

export interface OptionSpec {
  /** commander's notation: `--rows <n>`, `-f, --follow`, `--exclude <file...>`. */
  readonly flags: string;
  readonly doc: string;
  readonly default?: string | boolean;
  readonly choices?: readonly string[];
  readonly required?: boolean;
}

export interface CommandSpec {
  /** The words: `plan`, `ckpt ls`. */
  readonly name: string;
  /** commander's notation: `<recipe> [overrides...]`. */
  readonly arguments?: string;
  readonly doc: string;
  readonly group: CommandGroup;
  readonly options?: readonly OptionSpec[];
  /** Lines shown under "Examples" in its help. */
  readonly examples?: readonly string[];
  /** Loaded only when the command is used, so that help stays quick. */
  readonly load: () => Promise<CommandModule>;
}

export type CommandGroup = 'Runs' | 'Checkpoints' | 'Recipes and data' | 'This machine';

export interface CommandModule {
  readonly run: (input: CommandInput, context: CommandContext) => Promise<ExitCode | undefined>;
}

export interface CommandInput {
  /** Positional words, in order. */
  readonly words: readonly string[];
  readonly options: Readonly<Record<string, OptionValue | undefined>>;
}

export type OptionValue = string | boolean | readonly string[];

export interface CommandContext extends ApiContext {
  readonly printer: Printer;
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
}
