import { recipeKeys, recipeReference } from '../../core/recipe/index.ts';
import type { CommandContext, CommandInput } from '../command.ts';

/** `petrel recipe reference`. */
export async function run(_input: CommandInput, { printer }: CommandContext): Promise<undefined> {
  printer.data(recipeKeys, () => recipeReference().trimEnd());
  return undefined;
}
