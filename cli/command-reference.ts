/** All commands as a Markdown page: docs/look-up/commands.md. */
import { wrapProse } from '../core/wrap-prose.ts';
import type { CommandGroup, CommandSpec, OptionSpec } from './command.ts';
import { EXIT, exitDocs } from './exit-codes.ts';

const INTRO = `# Commands

Made by \`npm run docs\` from the table of commands, as \`petrel reference commands\` prints it; a test keeps it up to date.
\`petrel <command> --help\` prints the same on the terminal.

In a checkout \`petrel\` means \`node cli/bin.mjs\`; \`npm link\` installs it as a command. Every command accepts \`--json\`; it
then prints errors as JSON, too. \`<run>\` is a run's id, or its name, which means the newest run with that name.
`;

/** The whole page; ends with a line break. */
export function commandReference(commands: readonly CommandSpec[]): string {
  const groups = [...new Set(commands.map(({ group }) => group))];
  const parts = groups.map((group) => groupText(group, commands));
  return [INTRO, ...parts, exitText()].join('\n');
}

function groupText(group: CommandGroup, commands: readonly CommandSpec[]): string {
  const own = commands.filter((command) => command.group === group);
  const index = own.map((command) => `| ${linkTo(command)} | ${cell(command.doc)} |`);
  return [`## ${group}\n`, '| command | what it does |', '|---|---|', ...index, '', ...own.map(commandText)].join('\n');
}

const linkTo = ({ name }: CommandSpec): string => `[\`petrel ${name}\`](#petrel-${name.replaceAll(' ', '-')})`;

function commandText({ name, arguments: words, doc, options = [], examples = [] }: CommandSpec): string {
  const usage = ['petrel', name, words, options.length > 0 ? '[options]' : ''].filter((word) => word).join(' ');
  const table = ['| option | what it does |', '|---|---|', ...options.map(optionRow), ''];
  const shown = ['```sh', ...examples, '```', ''];
  return [
    `### petrel ${name}`,
    '',
    wrapProse(doc),
    '',
    `    ${usage}`,
    '',
    ...(options.length > 0 ? table : []),
    ...(examples.length > 0 ? shown : []),
  ].join('\n');
}

function optionRow({ flags, doc, required, choices, default: value }: OptionSpec): string {
  const facts = [
    ...(required === true ? ['required'] : []),
    ...(choices === undefined ? [] : [`one of ${choices.map((choice) => `\`${choice}\``).join(', ')}`]),
    ...(value === undefined ? [] : [`default: \`${String(value)}\``]),
  ];
  return `| \`${cell(flags)}\` | ${cell([doc, ...facts].join('; '))} |`;
}

function exitText(): string {
  const names = Object.keys(EXIT) as (keyof typeof EXIT)[];
  const rows = names.map((name) => `| ${EXIT[name]} | ${exitDocs[name]} |`);
  return ['## Exit codes\n', '| code | what it says |', '|---|---|', ...rows, ''].join('\n');
}

/** A "|" would end the cell. */
function cell(text: string): string {
  return text.replaceAll('|', '\\|');
}
