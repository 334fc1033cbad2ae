/** Builds a commander program from the table of commands. */
import { Command, CommanderError, Option } from 'commander';
import type { Argument } from 'commander';
import { InvalidInputError } from '../core/errors.ts';
import type { CommandContext, CommandGroup, CommandSpec, OptionSpec, OptionValue } from './command.ts';
import type { ExitCode } from './exit-codes.ts';

export interface ProgramOptions {
  readonly version: string;
  /** Docs of the nouns: `ckpt`, `recipe`, `data`. */
  readonly nouns: Readonly<Record<string, string>>;
  /** Made when the command is known, and with it whether --json was given. */
  readonly context: (json: boolean) => CommandContext;
  readonly stdout: { write(text: string): unknown };
}

/** Runs the words. Throws InvalidInputError for a wrong word; resolves to the command's exit code, 0 for help. */
export async function runProgram(
  specs: readonly CommandSpec[],
  words: readonly string[],
  options: ProgramOptions,
): Promise<ExitCode> {
  let exitCode: ExitCode = 0;
  const program = baseProgram(options);
  const parents = new Map<string, Command>([['', program]]);
  for (const spec of specs) {
    const command = addCommand(parents, spec, options);
    command.action(async (...received: readonly unknown[]) => {
      const input = { words: positional(received), options: command.opts<Record<string, OptionValue>>() };
      const module = await spec.load();
      exitCode = (await module.run(input, options.context(input.options['json'] === true))) ?? 0;
    });
  }
  try {
    await program.parseAsync([...words], { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (!isHelp(error)) throw usageError(error, helpFor(specs, words));
  }
  return exitCode;
}

function baseProgram({ version, stdout }: ProgramOptions): Command {
  return quiet(new Command('petrel'), stdout)
    .description('RL post-training of language models on machines that can vanish.')
    .version(version, '-V, --version', 'print the version');
}

/** Errors are ours to print, help goes to stdout. Sub-commands do not inherit this by themselves. */
function quiet(command: Command, stdout: ProgramOptions['stdout']): Command {
  return command
    .exitOverride()
    .configureOutput({
      writeErr: (text) => stdout.write(text),
      writeOut: (text) => stdout.write(text),
      outputError: () => undefined,
    })
    .helpOption('-h, --help', 'print help')
    .configureHelp({
      subcommandTerm: (sub) => [sub.name(), ...sub.registeredArguments.map(argumentTerm)].join(' '),
      minWidthToWrap: 30,
    })
    .helpCommand(false);
}

/** `<recipe>`, `[overrides...]`. Options stand in the command's own help. */
function argumentTerm(argument: Argument): string {
  const name = `${argument.name()}${argument.variadic ? '...' : ''}`;
  return argument.required ? `<${name}>` : `[${name}]`;
}

function addCommand(parents: Map<string, Command>, spec: CommandSpec, options: ProgramOptions): Command {
  const [first = '', second] = spec.name.split(' ');
  const parent = second === undefined ? parents.get('') : nounCommand(parents, first, spec.group, options);
  if (parent === undefined) throw new Error('the program itself is always there');
  const command = quiet(new Command(second ?? first), options.stdout)
    .summary(spec.doc)
    .description(spec.doc);
  if (second === undefined) command.helpGroup(`${spec.group}:`);
  if (spec.arguments !== undefined) command.arguments(spec.arguments);
  spec.options?.forEach((option) => command.addOption(toOption(option)));
  command.option('--json', 'print JSON');
  if (spec.examples !== undefined)
    command.addHelpText('after', `\nExamples:\n${spec.examples.map((line) => `  ${line}`).join('\n')}`);
  parent.addCommand(command);
  return command;
}

function nounCommand(
  parents: Map<string, Command>,
  noun: string,
  group: CommandGroup,
  { nouns, stdout }: ProgramOptions,
): Command {
  const known = parents.get(noun);
  if (known !== undefined) return known;
  const command = quiet(new Command(noun), stdout)
    .description(nouns[noun] ?? '')
    .helpGroup(`${group}:`);
  parents.get('')?.addCommand(command);
  parents.set(noun, command);
  return command;
}

function toOption(spec: OptionSpec): Option {
  const option = new Option(spec.flags, spec.doc);
  if (spec.default !== undefined) option.default(spec.default);
  if (spec.choices !== undefined) option.choices([...spec.choices]);
  return option.makeOptionMandatory(spec.required === true);
}

/** commander hands over each argument, a rest argument as a list, then options and the command itself. */
function positional(received: readonly unknown[]): string[] {
  return received
    .slice(0, -2)
    .flatMap((value) => (Array.isArray(value) ? (value as string[]) : typeof value === 'string' ? [value] : []));
}

function isHelp(error: CommanderError): boolean {
  return ['commander.helpDisplayed', 'commander.help', 'commander.version'].includes(error.code);
}

/** commander's own guess at the word that was meant becomes the hint. */
function usageError(error: CommanderError, help: string): InvalidInputError {
  const [first = '', ...rest] = error.message.replace(/^error: /, '').split('\n');
  const guess = /\(Did you mean (.+)\?\)/.exec(rest.join(' '))?.[1];
  return new InvalidInputError(first, { hint: guess === undefined ? help : `did you mean ${guess}?` });
}

function helpFor(specs: readonly CommandSpec[], words: readonly string[]): string {
  const meant = specs.find(({ name }) => `${words.join(' ')} `.startsWith(`${name} `));
  return meant === undefined ? 'petrel --help' : `petrel ${meant.name} --help`;
}
