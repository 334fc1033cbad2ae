/** All keys of a recipe as a Markdown page: docs/look-up/recipe-keys.md. */
import { type RecipeKey, recipeKeys, type RecipeSection, recipeSections } from './keys.ts';
import { wrapProse } from '../wrap-prose.ts';
import { BUILT_TODAY } from './not-built.ts';

const INTRO = `# Recipe keys

Made by \`npm run docs\` from the schema, as \`petrel recipe reference\` prints it; a test keeps it up to date. How recipes
work: [recipes](../do/recipes.md).

*On resume* says what a resumed run does with a changed value: **free** takes effect, **ask** changes the experiment and
needs a yes (\`--accept\`), **fixed** would be another run: \`petrel fork\` changes some of these.
*Today* lists the values that petrel supports for a key that is only partly built; other values are refused before a run
starts.
`;

/** The whole page; ends with a line break. */
export function recipeReference(): string {
  const top = keysOf('');
  const sections = recipeSections.filter((section) => keysOf(section.path).length > 0);
  return [INTRO, `## At the top\n\n${table(top)}\n`, ...sections.map(sectionText)].join('\n');
}

function sectionText(section: RecipeSection): string {
  return `## ${section.path}\n\n${wrapProse(section.doc)}\n\n${table(keysOf(section.path))}\n`;
}

/** The keys directly in a section ('' = the top). */
function keysOf(section: string): RecipeKey[] {
  return recipeKeys.filter(({ path }) => path.slice(0, Math.max(0, path.lastIndexOf('.'))) === section);
}

function table(keys: readonly RecipeKey[]): string {
  return ['| key | type | default | on resume | what it is |', '|---|---|---|---|---|', ...keys.map(row)].join('\n');
}

function row(key: RecipeKey): string {
  return `| ${[`\`${key.path}\``, cell(key.type), defaultCell(key), key.change, whatItIs(key)].join(' | ')} |`;
}

function defaultCell(key: RecipeKey): string {
  if (key.required) return '**required**';
  const sft =
    key.sftDefault === undefined || key.sftDefault === key.default
      ? ''
      : `, given responses: \`${JSON.stringify(key.sftDefault)}\``;
  return cell(`\`${JSON.stringify(key.default)}\`${sft}`);
}

function whatItIs(key: RecipeKey): string {
  const unit = key.unit === undefined ? '' : ` [${key.unit}]`;
  const verl = key.verl === undefined ? '' : ` verl: \`${key.verl}\`.`;
  const today = BUILT_TODAY[key.path];
  return cell(`${key.doc}${unit}${verl}${today === undefined ? '' : ` *Today: ${today}.*`}`);
}

/** A "|" would end the cell. */
function cell(text: string): string {
  return text.replaceAll('|', '\\|');
}
