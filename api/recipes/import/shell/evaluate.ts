/**
 * Reads a script that starts a training, and finds the words of that call. Nothing is executed: assignments, arrays,
 * tests, `if`, `case` and functions are followed; everything else that could matter is a note. Where a condition is not
 * known, no branch is taken, and the variables that the branches set are not known from there on.
 */
import { evaluateTest, not, type Truth } from './tests.ts';
import { type Field, Variables } from './expand.ts';
import { matchesGlob } from './glob.ts';
import { hasHole, type Hole } from './holes.ts';
import { plain } from './lexer.ts';
import { LIMITS, within } from './limits.ts';
import { parseScript } from './parser.ts';
import type { Assignment, Body, Statement, Word } from './syntax.ts';

/** A place that was not read. */
export interface ScriptNote {
  readonly line: number;
  readonly text: string;
}

/** `python3 -m verl.trainer.main_ppo …` */
export interface Launch {
  readonly line: number;
  readonly module: string;
  /** The words after the module. They may have holes. */
  readonly words: readonly Field[];
}

export interface ReadScript {
  readonly launches: readonly Launch[];
  readonly notes: readonly ScriptNote[];
  /** Why parts of a word are not known. */
  readonly holesIn: (text: string) => Hole[];
}

export interface ScriptInputs {
  /** Variables of the environment, as with `NAME=value bash script.sh`. */
  readonly env: ReadonlyMap<string, string>;
  /** `"$@"`. */
  readonly words: readonly string[];
}

/** Throws InvalidInputError for a script that cannot be parsed, or is over the limits. */
export function readScript(source: string, inputs: ScriptInputs): ReadScript {
  const evaluator = new Evaluator(inputs);
  evaluator.body(parseScript(source));
  const { launches, notes, variables } = evaluator;
  return { launches, notes, holesIn: (text) => variables.holes.in(text) };
}

type Simple = Extract<Statement, { readonly type: 'simple' }>;

class Evaluator {
  readonly variables = new Variables();
  readonly launches: Launch[] = [];
  readonly notes: ScriptNote[] = [];
  readonly #functions = new Map<string, Statement>();
  #statements = 0;
  #depth = 0;
  /** The command that ended the code: after `exit` nothing more runs; after `return` the function ends. */
  #ended: 'exit' | 'return' | undefined;

  constructor({ env, words }: ScriptInputs) {
    for (const [name, text] of [['HOME', '~'] as const, ...env]) this.variables.set(name, { type: 'scalar', text });
    this.variables.positional = words.map((text) => ({ text, line: 0 }));
  }

  body(body: Body): Truth {
    let truth: Truth = true;
    for (const statement of body) {
      if (this.#ended !== undefined) break;
      truth = this.#statement(statement);
    }
    return truth;
  }

  #statement(statement: Statement): Truth {
    this.#statements += 1;
    within('statements', this.#statements, statement.line);
    this.#depth += 1;
    within('depth', this.#depth, statement.line);
    const truth = this.#evaluate(statement);
    this.#depth -= 1;
    return truth;
  }

  #evaluate(statement: Statement): Truth {
    switch (statement.type) {
      case 'simple':
        return this.#simple(statement);
      case 'if':
        return this.#if(statement);
      case 'case':
        return this.#case(statement);
      case 'chain':
        return this.#chain(statement);
      case 'not':
        return not(this.#statement(statement.statement));
      case 'group':
        return this.body(statement.body);
      case 'subshell':
        this.#subshell(statement.body);
        return undefined;
      case 'function':
        this.#functions.set(statement.name, statement.body);
        return true;
      default:
        this.#unread(statement);
        return undefined;
    }
  }

  #if({ clauses, otherwise, line }: Extract<Statement, { readonly type: 'if' }>): Truth {
    for (const [index, { condition, body }] of clauses.entries()) {
      const truth = this.body(condition);
      if (truth === true) return this.body(body);
      if (truth === undefined) {
        const rest = clauses.slice(index).flatMap((clause) => clause.body);
        const words = simpleIn(condition).flatMap((one) => one.words);
        return this.#undecided([...rest, ...otherwise], line, this.#cause(words) ?? `the condition in line ${line}`);
      }
    }
    return this.body(otherwise);
  }

  #case({ subject, branches, line }: Extract<Statement, { readonly type: 'case' }>): Truth {
    const text = this.variables.text(subject);
    const all = branches.flatMap(({ body }) => body);
    const condition = this.#cause([subject]) ?? `the case in line ${line}`;
    if (hasHole(text)) return this.#undecided(all, line, condition);
    for (const { patterns, body } of branches) {
      const matches = patterns.map((pattern) => matchesGlob(this.variables.pattern(pattern), text));
      if (matches.includes(true)) return this.body(body);
      if (matches.includes(undefined)) return this.#undecided(all, line, condition);
    }
    return true;
  }

  #chain({ first, rest }: Extract<Statement, { readonly type: 'chain' }>): Truth {
    let truth = this.#statement(first);
    for (const { operator, statement } of rest) {
      if (this.#ended !== undefined) return truth;
      if (truth === undefined) this.#undecided([statement], statement.line, `the command before "${operator}"`);
      else if (truth === (operator === '&&')) truth = this.#statement(statement);
    }
    return truth;
  }

  /** What it sets is lost, but a training that it starts counts. */
  #subshell(body: Body): void {
    const before = this.#ended;
    const names = namesSetIn(body, this.#functions);
    const saved = [...names].map((name) => [name, this.variables.get(name)] as const);
    for (const statement of body) this.body([statement]);
    for (const [name, value] of saved) {
      if (value === undefined) this.variables.unset(name);
      else this.variables.set(name, value);
    }
    this.#ended = before;
  }

  #unread({ what, variable, body, line }: Extract<Statement, { readonly type: 'unread' }>): void {
    this.#note(line, `"${what}" is not read`);
    if (variable !== undefined) this.#forget(variable, line, `a value that the loop in line ${line} sets`);
    this.#undecided(body, line, `the loop in line ${line}`);
  }

  /** No branch is taken: what they set is not known any more. */
  #undecided(body: Body, line: number, condition: string): undefined {
    const names = namesSetIn(body, this.#functions);
    for (const name of names) this.#forget(name, line, `a value that depends on ${condition}`);
    for (const launch of launchesIn(body)) this.#note(launch, `a call is not read, because it depends on ${condition}`);
    if (names.size > 0)
      this.#note(line, `${[...names].slice(0, 8).join(', ')}: not known, because it depends on ${condition}`);
    return undefined;
  }

  /** The first variable in the words that is not known, with how to give it. */
  #cause(words: readonly Word[]): string | undefined {
    const parts = words.flatMap((word) => word.parts);
    for (const part of parts) {
      if (part.type !== 'parameter' || !/^[A-Za-z_]/.test(part.name)) continue;
      const value = this.variables.get(part.name);
      const text = value?.type === 'scalar' ? value.text : '';
      const isOpen = value === undefined && part.operator === undefined;
      if (isOpen || hasHole(text)) return `$${part.name} (--env ${part.name}=…)`;
    }
    return undefined;
  }

  /** An array keeps its elements: branches usually add some. */
  #forget(name: string, line: number, reason: string): void {
    const text = this.variables.holes.make(line, reason);
    const value = this.variables.get(name);
    this.variables.set(
      name,
      value?.type === 'array' ? { type: 'array', items: [...value.items, { text, line }] } : { type: 'scalar', text },
    );
  }

  #simple({ assignments, words, line }: Simple): Truth {
    const fields = words.flatMap((word) => this.variables.fields(word));
    const command = fields[0]?.text ?? '';
    const isDeclaration = DECLARATIONS.has(command);
    if (words.length === 0 || isDeclaration) for (const one of assignments) this.#assign(one);
    if (words.length === 0 || isDeclaration) return true;
    const launch = launchOf(fields, line);
    if (launch !== undefined) {
      this.launches.push(launch);
      return undefined;
    }
    if (this.#continues(fields, line)) return undefined;
    return this.#builtin(command, fields.slice(1), line);
  }

  /** A comment, or a blank after the `\`, ends a call too early: the shell takes the next line as a command. */
  #continues(fields: readonly Field[], line: number): boolean {
    const last = this.launches.at(-1);
    if (last === undefined || !/^[~+]{0,2}[a-z]\w*(?:\.\w+)+=/.test(fields[0]?.text ?? '')) return false;
    this.launches[this.launches.length - 1] = { ...last, words: [...last.words, ...fields] };
    this.#note(line, 'the call ends before this line, but the line has overrides; they are read as part of the call');
    return true;
  }

  #builtin(command: string, fields: readonly Field[], line: number): Truth {
    const words = fields.map(({ text }) => text);
    switch (command) {
      case '[':
      case '[[':
        return /^\]\]?$/.test(words.at(-1) ?? '') ? evaluateTest(words.slice(0, -1)) : undefined;
      case 'test':
        return evaluateTest(words);
      case 'true':
      case ':':
        return true;
      case 'false':
        return false;
      case 'exit':
      case 'return':
        this.#ended = command;
        return true;
      case 'unset':
        for (const name of words) this.variables.unset(name);
        return true;
      case 'shift':
        this.variables.positional = this.variables.positional.slice(Number(words[0] ?? 1) || 1);
        return true;
      case 'set':
        if (words.includes('--')) this.variables.positional = fields.slice(words.indexOf('--') + 1);
        return true;
      case 'source':
      case '.':
        this.#note(line, `${command} ${shown(words[0] ?? '')} is not read: variables that it sets are not known`);
        return undefined;
      case 'eval':
      case 'read':
      case 'mapfile':
      case 'readarray':
      case 'getopts':
      case 'let':
        this.#note(line, `"${command}" is not read`);
        for (const name of words.filter((word) => /^[A-Za-z_]\w*$/.test(word)))
          this.#forget(name, line, `a value that "${command}" sets`);
        return undefined;
      default:
        return this.#call(command, fields);
    }
  }

  #call(name: string, fields: readonly Field[]): Truth {
    const body = this.#functions.get(name);
    if (body === undefined) return undefined;
    const before = this.variables.positional;
    this.variables.positional = fields;
    const truth = this.#statement(body);
    this.variables.positional = before;
    if (this.#ended === 'return') this.#ended = undefined;
    return truth;
  }

  #assign({ name, append, value, line }: Assignment): void {
    const before = append ? this.variables.get(name) : undefined;
    if (value.type === 'array') {
      const items = value.words.flatMap((word) => this.variables.fields(word));
      const first = before === undefined ? [] : before.type === 'array' ? before.items : [{ text: before.text, line }];
      within('tokens', first.length + items.length, line);
      this.variables.set(name, { type: 'array', items: [...first, ...items] });
      return;
    }
    const text = this.variables.text(value.word);
    if (before?.type === 'array') {
      this.#note(line, `${name}+=… to an array is not read`);
      this.variables.set(name, { type: 'array', items: [...before.items, { text, line }] });
      return;
    }
    within('value', (before?.text ?? '').length + text.length, line);
    this.variables.set(name, { type: 'scalar', text: (before?.text ?? '') + text });
  }

  #note(line: number, text: string): void {
    within('notes', this.notes.length, line);
    if (!this.notes.some((note) => note.line === line && note.text === text)) this.notes.push({ line, text });
  }
}

const DECLARATIONS: ReadonlySet<string> = new Set(['export', 'local', 'declare', 'readonly', 'typeset']);
/** Commands that print the words of a call. */
const PRINTERS: ReadonlySet<string> = new Set(['echo', 'printf', 'cat', 'grep', 'pkill', 'pgrep']);

/** The last name of a module that trains: `main_ppo`, `fully_async_main`, `sft_trainer`. */
const TRAINING = /(?:^|\.)(?:main_(?!eval|generation)\w+|\w+_main|\w*sft_trainer\w*)$/;

/** The call of a training module in the words of a command, if there is one. */
function launchOf(fields: readonly Field[], line: number): Launch | undefined {
  if (PRINTERS.has(fields[0]?.text ?? '')) return undefined;
  const texts = fields.map(({ text }) => text);
  const module = texts.findIndex((text, index) => texts[index - 1] === '-m' && TRAINING.test(text));
  const at = module >= 0 ? module : texts.findIndex((text) => /\/(?:main_ppo\w*|\w*sft_trainer)\.py$/.test(text));
  const name = texts[at];
  return name === undefined ? undefined : { line, module: name, words: fields.slice(at + 1) };
}

/** Lines of calls in statements that are not evaluated. */
function launchesIn(body: Body): number[] {
  return simpleIn(body)
    .filter(({ words }) => words.some((word, index) => index > 0 && TRAINING.test(plain(word))))
    .map(({ line }) => line);
}

/** Every variable that the statements could set, those of functions included. */
function namesSetIn(body: Body, functions: ReadonlyMap<string, Statement>): ReadonlySet<string> {
  const names = new Set<string>();
  const seen = new Set<string>();
  const visit = (statements: Body): void => {
    for (const { assignments, words } of simpleIn(statements)) {
      const command = words[0] === undefined ? '' : plain(words[0]);
      if (words.length === 0 || DECLARATIONS.has(command)) for (const { name } of assignments) names.add(name);
      const called = functions.get(command);
      if (called === undefined || seen.has(command)) continue;
      seen.add(command);
      visit([called]);
    }
  };
  visit(body);
  return names;
}

/** The simple commands in statements, at any depth. */
function simpleIn(body: Body): Simple[] {
  return body.flatMap((statement): Simple[] => {
    switch (statement.type) {
      case 'simple':
        return [statement];
      case 'if':
        return [
          ...statement.clauses.flatMap((clause) => [...simpleIn(clause.condition), ...simpleIn(clause.body)]),
          ...simpleIn(statement.otherwise),
        ];
      case 'case':
        return statement.branches.flatMap((branch) => simpleIn(branch.body));
      case 'chain':
        return simpleIn([statement.first, ...statement.rest.map((one) => one.statement)]);
      case 'not':
        return simpleIn([statement.statement]);
      case 'function':
        return [];
      default:
        return simpleIn(statement.body);
    }
  });
}

const shown = (text: string): string => (hasHole(text) ? 'a file' : text.slice(0, LIMITS.depth));
