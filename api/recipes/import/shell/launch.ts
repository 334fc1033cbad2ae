/** The calls of trainings among the commands of a script. */
import { simpleIn } from './commands.ts';
import type { Field } from './expand.ts';
import { plain } from './lexer.ts';
import type { Body } from './syntax.ts';

/** `python3 -m verl.trainer.main_ppo …` */
export interface Launch {
  readonly line: number;
  readonly module: string;
  /** The words after the module. They may have holes. */
  readonly words: readonly Field[];
}

/** Commands that print the words of a call. */
export const PRINTERS: ReadonlySet<string> = new Set(['echo', 'printf', 'cat', 'grep', 'pkill', 'pgrep']);

/** The last name of a module that trains: `main_ppo`, `fully_async_main`, `sft_trainer`. */
const TRAINING = /(?:^|\.)(?:main_(?!eval|generation)\w+|\w+_main|\w*sft_trainer\w*)$/;

/** `main_ppo_split.py`, in the folder where the script runs. */
const PROGRAM = /^(?:main_ppo\w*|\w*sft_trainer)\.py$/;
const isPython = (word: string): boolean => /(?:^|\/)(?:python[\d.]*|torchrun)$/.test(word);

/** The call of a training module in the words of a command, if there is one. */
export function launchOf(fields: readonly Field[], line: number): Launch | undefined {
  if (PRINTERS.has(fields[0]?.text ?? '')) return undefined;
  const texts = fields.map(({ text }) => text);
  // A module that starts another one comes before it: `-m launch verl.trainer.main_ppo`.
  const module = texts.findIndex(
    (text, index) => texts.slice(Math.max(0, index - 2), index).includes('-m') && TRAINING.test(text),
  );
  const isFile = (text: string, index: number) =>
    /\/(?:main_ppo\w*|\w*sft_trainer)\.py$/.test(text) || (PROGRAM.test(text) && texts.slice(0, index).some(isPython));
  const at = module >= 0 ? module : texts.findIndex(isFile);
  const name = texts[at];
  return name === undefined ? undefined : { line, module: name, words: fields.slice(at + 1) };
}

/** Lines of calls in statements that are not evaluated. */
export function launchesIn(body: Body): number[] {
  return simpleIn(body)
    .filter(({ words }) => words.some((word, index) => index > 0 && TRAINING.test(plain(word))))
    .map(({ line }) => line);
}
