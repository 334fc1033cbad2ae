import { recipeJsonSchema } from '../../core/recipe/index.ts';
import type { CommandContext, CommandInput } from '../command.ts';

/** `petrel recipe schema`. */
export async function run(_input: CommandInput, { printer }: CommandContext): Promise<undefined> {
  const schema = recipeJsonSchema();
  printer.data(schema, () => JSON.stringify(schema, null, 2));
  return undefined;
}
