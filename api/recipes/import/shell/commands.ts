/** What statements contain, without evaluating them: commands, and the variables that they could set. */
import { setByArithmetic } from './arithmetic.ts';
import { plain } from './lexer.ts';
import type { Body, Statement } from './syntax.ts';

export type Simple = Extract<Statement, { readonly type: 'simple' }>;
export type Arithmetic = Extract<Statement, { readonly type: 'arithmetic' }>;

/** The simple and the arithmetic commands in statements, at any depth. */
export function commandsIn(body: Body): (Simple | Arithmetic)[] {
  return body.flatMap((statement): (Simple | Arithmetic)[] => {
    switch (statement.type) {
      case 'simple':
      case 'arithmetic':
        return [statement];
      case 'if':
        return [
          ...statement.clauses.flatMap((clause) => [...commandsIn(clause.condition), ...commandsIn(clause.body)]),
          ...commandsIn(statement.otherwise),
        ];
      case 'case':
        return statement.branches.flatMap((branch) => commandsIn(branch.body));
      case 'chain':
        return commandsIn([statement.first, ...statement.rest.map((one) => one.statement)]);
      case 'not':
        return commandsIn([statement.statement]);
      case 'function':
        return [];
      case 'loop':
        return commandsIn([...(statement.condition ?? []), ...statement.body]);
      default:
        return commandsIn(statement.body);
    }
  });
}

/** The simple commands in statements, at any depth. */
export const simpleIn = (body: Body): Simple[] =>
  commandsIn(body).flatMap((one) => (one.type === 'simple' ? [one] : []));

/** Every variable that the statements could set, those of functions included. */
export function namesSetIn(body: Body, functions: ReadonlyMap<string, Statement>): ReadonlySet<string> {
  const names = new Set<string>();
  const seen = new Set<string>();
  const visit = (statements: Body): void => {
    for (const one of commandsIn(statements)) {
      if (one.type === 'arithmetic') {
        for (const name of setByArithmetic(one.source)) names.add(name);
        continue;
      }
      const { assignments, words } = one;
      const command = words[0] === undefined ? '' : plain(words[0]);
      if (words.length === 0 || DECLARATIONS.has(command)) for (const { name } of assignments) names.add(name);
      if (SETTERS.has(command)) for (const name of words.slice(1).map(plain).flatMap(nameSetBy)) names.add(name);
      const called = functions.get(command);
      if (called === undefined || seen.has(command)) continue;
      seen.add(command);
      visit([called]);
    }
  };
  visit(body);
  return names;
}

/** Commands whose words may be assignments. */
export const DECLARATIONS: ReadonlySet<string> = new Set(['export', 'local', 'declare', 'readonly', 'typeset']);
/** Commands that set the variables which they name. */
const SETTERS: ReadonlySet<string> = new Set(['read', 'mapfile', 'readarray', 'let', 'getopts', 'unset']);
/** The variable that a word of `read`, `let` or `printf -v` names. */
export const nameSetBy = (word: string): string[] =>
  /^(?:\+\+|--)?([A-Za-z_]\w*)(?![\w./])/.exec(word)?.slice(1, 2) ?? [];

/** `$1`, `$#`, `${#}`, `$@` in arithmetic. */
export const ARGUMENTS = /\$\{?[1-9#@*]/;

/** Is there arithmetic that names arguments? */
export const namesArguments = (body: Body): boolean =>
  commandsIn(body).some((command) => command.type === 'arithmetic' && ARGUMENTS.test(command.source));
