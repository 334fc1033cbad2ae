/**
 * Reads a script that starts a training, and finds the words of that call. Nothing is executed: assignments, arrays,
 * tests, `if`, `case` and functions are followed; everything else that could matter is a note. Where a condition is not
 * known, no branch is taken, and the variables that the branches set are not known from there on.
 */
import { InvalidInputError } from '../../../../core/errors.ts';
import { evaluateTest, not, type Truth } from './tests.ts';
import { setByArithmetic } from './arithmetic.ts';
import {
  ARGUMENTS,
  type Arithmetic,
  DECLARATIONS,
  namesArguments,
  nameSetBy,
  namesSetIn,
  type Simple,
  simpleIn,
} from './commands.ts';
import { type Launch, launchesIn, launchOf, PRINTERS } from './launch.ts';
import { argumentText, type Field, Variables } from './expand.ts';
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

export interface ReadScript {
  readonly launches: readonly Launch[];
  readonly notes: readonly ScriptNote[];
  /** The line of the `exit` that ended the script, if one did. */
  readonly exitLine: number | undefined;
  /** Why parts of a word are not known. */
  readonly holesIn: (text: string) => Hole[];
}

export interface ScriptInputs {
  /** Variables of the environment, as with `NAME=value bash script.sh`. */
  readonly env: ReadonlyMap<string, string>;
  /** The script’s arguments, as in `bash script.sh 8 /path`. */
  readonly args?: readonly string[] | undefined;
  /** Overrides, which `"$@"` has behind the arguments. */
  readonly words: readonly string[];
}

type If = Extract<Statement, { readonly type: 'if' }>;

/** Throws InvalidInputError for a script that cannot be parsed, or is over the limits. */
export function readScript(source: string, inputs: ScriptInputs): ReadScript {
  const evaluator = new Evaluator(inputs);
  evaluator.body(parseScript(source));
  const { launches, notes, variables, exitLine } = evaluator;
  return { launches, notes, exitLine, holesIn: (text) => variables.holes.in(text) };
}

class Evaluator {
  readonly variables = new Variables();
  readonly launches: Launch[] = [];
  readonly notes: ScriptNote[] = [];
  #exitLine: number | undefined;
  readonly #env: ReadonlyMap<string, string>;
  readonly #functions = new Map<string, Statement>();
  #statements = 0;
  #depth = 0;
  /** The command that ended the code: after `exit` nothing more runs; after `return` the function ends. */
  #ended: 'exit' | 'return' | undefined;

  /** Variables whose values were made from the script’s arguments. */
  readonly #fromArguments = new Set<string>();

  constructor({ env, args = [], words }: ScriptInputs) {
    this.#env = env;
    for (const [name, text] of [['HOME', '~'] as const, ...env]) this.variables.set(name, { type: 'scalar', text });
    this.variables.areArgumentsOpen = args.length === 0;
    this.variables.positional = [
      ...args.map((text) => ({ text, line: 0 })),
      ...words.map((text) => ({ text, line: 0, isOverride: true as const })),
    ];
  }

  /** The line of the `exit` that ended the script itself, not only a subshell. */
  get exitLine(): number | undefined {
    return this.#ended === 'exit' ? this.#exitLine : undefined;
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
      case 'arithmetic':
        return this.#arithmetic(statement);
      default:
        return this.#loop(statement);
    }
  }

  #if({ clauses, otherwise, line }: If): Truth {
    for (const [index, { condition, body }] of clauses.entries()) {
      const truth = this.body(condition);
      if (truth === true && this.#endsForArguments(condition, body)) continue;
      if (truth === true) return this.body(body);
      if (truth === undefined) {
        const rest = clauses.slice(index).flatMap((clause) => clause.body);
        const words = simpleIn(condition).flatMap((one) => one.words);
        return this.#undecided([...rest, ...otherwise], line, this.#cause(words) ?? `the condition in line ${line}`);
      }
    }
    return this.#otherwise(clauses, otherwise, line);
  }

  /** Where the script does nothing without its arguments, the branch for them is read instead of `else`. */
  #otherwise(clauses: If['clauses'], otherwise: Body, line: number): Truth {
    const bodies = clauses
      .filter(({ condition, body }) => !this.#ends(body) && this.#startsForArguments(condition, body, otherwise))
      .map(({ body }) => body);
    const [only, ...others] = bodies;
    if (only === undefined) return this.body(otherwise);
    return others.length === 0 ? this.body(only) : this.#undecided(bodies.flat(), line, 'its arguments (--args …)');
  }

  /** Does only the branch for arguments go on, or train? */
  #startsForArguments(condition: Body, body: Body, otherwise: Body): boolean {
    if (this.#endsForArguments(condition, otherwise)) return true;
    const trains = launchesIn(body).length > 0 && launchesIn(otherwise).length === 0;
    return trains && this.variables.areArgumentsOpen && this.#isAboutArguments(condition);
  }

  #case({ subject, branches, line }: Extract<Statement, { readonly type: 'case' }>): Truth {
    const text = this.variables.inTest(() => this.variables.text(subject));
    const all = branches.flatMap(({ body }) => body);
    const condition = this.#cause([subject]) ?? `the case in line ${line}`;
    if (hasHole(text)) return this.#undecided(all, line, condition);
    for (const { patterns, body, continues } of branches) {
      const matches = patterns.map((pattern) => matchesGlob(this.variables.pattern(pattern), text));
      const isOpen = continues === true || (this.#isFromArguments([subject]) && this.#ends(body));
      if (matches.includes(true) && isOpen) return this.#undecided(all, line, condition);
      if (matches.includes(true)) return this.body(body);
      if (matches.includes(undefined)) return this.#undecided(all, line, condition);
    }
    return true;
  }

  #chain({ first, rest }: Extract<Statement, { readonly type: 'chain' }>): Truth {
    let truth = this.#statement(first);
    const before: Statement[] = [first];
    for (const { operator, statement } of rest) {
      if (this.#ended !== undefined) return truth;
      if (truth === undefined) this.#undecided([statement], statement.line, `the command before "${operator}"`);
      else if (truth === (operator === '&&'))
        truth = this.#endsForArguments(before, [statement]) ? !truth : this.#statement(statement);
      else if (this.#startsForArguments(before, [statement], [])) truth = this.#statement(statement);
      before.push(statement);
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

  /** Does the script end here for lack of arguments? Then what follows is read as if they were given. */
  #endsForArguments(condition: Body, body: Body): boolean {
    if (!this.variables.areArgumentsOpen || !this.#ends(body)) return false;
    if (!this.#isAboutArguments(condition)) return false;
    this.#note(
      condition[0]?.line ?? 0,
      'the script ends here without its arguments; it is read on as if they were given (--args gives them)',
    );
    return true;
  }

  /** Does the body end the script, or its function? */
  #ends(body: Body, seen: ReadonlySet<string> = new Set()): boolean {
    return body.some((statement) => {
      if (statement.type === 'group') return this.#ends(statement.body, seen);
      if (statement.type === 'chain')
        return this.#ends(
          statement.rest.slice(-1).map((one) => one.statement),
          seen,
        );
      if (statement.type !== 'simple') return false;
      const command = statement.words[0] === undefined ? '' : plain(statement.words[0]);
      if (command === 'exit' || (command === 'return' && seen.size === 0)) return true;
      const called = seen.has(command) ? undefined : this.#functions.get(command);
      return called !== undefined && this.#ends([called], new Set([...seen, command]));
    });
  }

  #isAboutArguments(condition: Body): boolean {
    return namesArguments(condition) || simpleIn(condition).some((one) => this.#isFromArguments(one.words));
  }

  /** Do the words name `$1`, `$#`, `$@`, or a variable that was made from them? */
  #isFromArguments(words: readonly Word[]): boolean {
    return (
      this.variables.areArgumentsOpen &&
      words.some((word) =>
        word.parts.some(
          (part) =>
            (part.type === 'arithmetic' && ARGUMENTS.test(part.source)) ||
            (part.type === 'parameter' &&
              (/^(?:[1-9]\d*|[@*#])$/.test(part.name) ||
                this.#fromArguments.has(part.name) ||
                (part.operand !== undefined && this.#isFromArguments([part.operand])))),
        ),
      )
    );
  }

  #arithmetic({ source, line }: Arithmetic): Truth {
    const names = setByArithmetic(source);
    for (const name of names) this.#forget(name, line, `a value that the arithmetic in line ${line} sets`);
    const value = names.length > 0 ? undefined : this.variables.arithmetic(source);
    if (value === undefined) this.#note(line, '"(( … ))" is not read');
    return value === undefined ? undefined : value !== 0;
  }

  /** A loop is not followed, unless it runs not once: over arguments that are not given, for example. */
  #loop(loop: Extract<Statement, { readonly type: 'loop' }>): Truth {
    if (this.#runsNever(loop)) return true;
    const { what, variable, condition = [], body, line } = loop;
    this.#note(line, `"${what}" is not read`);
    if (variable !== undefined) this.#forget(variable, line, `a value that the loop in line ${line} sets`);
    return this.#undecided([...condition, ...body], line, `the loop in line ${line}`);
  }

  #runsNever({ what, items, condition }: Extract<Statement, { readonly type: 'loop' }>): boolean {
    if (items !== undefined) {
      const fields = items.flatMap((word) => this.variables.fields(word));
      return what === 'for' && fields.every(({ isOverride }) => isOverride === true);
    }
    if (condition === undefined) return false;
    const isGetopts = simpleIn(condition).some(({ words: [command] }) => command && plain(command) === 'getopts');
    const isOfArguments = isGetopts || this.#isAboutArguments(condition);
    return isOfArguments && this.variables.args.length === 0 && this.body(condition) === (what === 'until');
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
      if (part.type === 'parameter' && /^[1-9]$/.test(part.name) && this.variables.areArgumentsOpen)
        return argumentText(part.name);
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
    const text = this.#env.get(name) ?? this.variables.holes.make(line, reason);
    const value = this.variables.get(name);
    this.variables.set(
      name,
      value?.type === 'array' ? { type: 'array', items: [...value.items, { text, line }] } : { type: 'scalar', text },
    );
  }

  #simple({ assignments, words, line }: Simple): Truth {
    const fields = this.#fields(words);
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
    this.#noteUnknownCommand(fields, line);
    const inner = shellTextOf(fields);
    if (inner !== undefined) this.#subshell(this.#bodyOf(inner, line) ?? []);
    if (inner !== undefined) return undefined;
    return this.#builtin(command, fields.slice(1), { words, line });
  }

  /** The words of a command. Those of `[[` are not split. */
  #fields(words: readonly Word[]): Field[] {
    const command = words[0] === undefined ? '' : plain(words[0]);
    const { variables } = this;
    if (command === '[[')
      return variables.inTest(() => words.map((word) => ({ text: variables.text(word), line: word.line })));
    const expand = () => words.flatMap((word) => variables.fields(word));
    return command === '[' || command === 'test' ? variables.inTest(expand) : expand();
  }

  /** `$COMMAND data.train_files=…` could be the call, if it were known. */
  #noteUnknownCommand([command, ...fields]: readonly Field[], line: number): void {
    const [hole] = command === undefined ? [] : this.variables.holes.in(command.text);
    if (hole !== undefined && fields.some(({ text }) => OVERRIDE.test(text)))
      this.#note(line, `a command with overrides is not read, because it begins with ${hole.reason}`);
  }

  /** A comment, or a blank after the `\`, ends a call too early: the shell takes the next line as a command. */
  #continues(fields: readonly Field[], line: number): boolean {
    const last = this.launches.at(-1);
    if (last === undefined || !OVERRIDE.test(fields[0]?.text ?? '')) return false;
    this.launches[this.launches.length - 1] = { ...last, words: [...last.words, ...fields] };
    this.#note(line, 'the call ends before this line, but the line has overrides; they are read as part of the call');
    return true;
  }

  #builtin(command: string, fields: readonly Field[], statement: Pick<Simple, 'words' | 'line'>): Truth {
    const { line } = statement;
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
        if (command === 'exit') this.#exitLine = line;
        return true;
      case 'unset':
        for (const name of words) this.variables.unset(name);
        return true;
      case 'shift':
        this.variables.shift(Number(words[0] ?? 1) || 1);
        return true;
      case 'set':
        if (words.includes('--')) {
          this.variables.positional = fields.slice(words.indexOf('--') + 1);
          this.variables.areArgumentsOpen &&= this.variables.positional.length === 0;
        }
        return true;
      case 'source':
      case '.':
        this.#note(line, `${command} ${shown(words[0] ?? '')} is not read: variables that it sets are not known`);
        return undefined;
      case 'getopts':
        if (this.variables.args.length === 0) return false;
        return this.#unread(command, words, line);
      case 'printf':
        if (words[0] === '-v') this.#unread('printf -v', words.slice(1, 2), line);
        return undefined;
      case 'eval': {
        const body = this.#bodyOf(words.join(' '), line);
        return body === undefined ? this.#unread(command, words, line) : this.body(body);
      }
      case 'read':
      case 'mapfile':
      case 'readarray':
      case 'let':
        return this.#unread(command, words, line);
      default:
        return this.#call(command, statement.words, fields);
    }
  }

  /** The statements in the text of `eval` or `bash -c`; undefined when it is not known what it begins with. */
  #bodyOf(text: string, line: number): Body | undefined {
    if (/^\s*\0/.test(text)) return undefined;
    try {
      return parseScript(text, line);
    } catch (error) {
      if (!(error instanceof InvalidInputError)) throw error;
      return undefined;
    }
  }

  /** A command that sets variables to what is not known. */
  #unread(command: string, words: readonly string[], line: number): undefined {
    this.#note(line, `"${command}" is not read`);
    for (const name of words.flatMap(nameSetBy)) this.#forget(name, line, `a value that "${command}" sets`);
    return undefined;
  }

  /** A function has the script’s arguments where it is called with them. */
  #call(name: string, words: readonly Word[], fields: readonly Field[]): Truth {
    const body = this.#functions.get(name);
    if (body === undefined) return undefined;
    const { positional, areArgumentsOpen } = this.variables;
    const isGivenThem = words.some(({ parts }) => parts.some((part) => 'name' in part && /^[@*]$/.test(part.name)));
    this.variables.positional = fields;
    this.variables.areArgumentsOpen &&= isGivenThem;
    const truth = this.#statement(body);
    this.variables.positional = positional;
    this.variables.areArgumentsOpen = areArgumentsOpen;
    if (this.#ended === 'return') this.#ended = undefined;
    return truth;
  }

  #assign(assignment: Assignment): void {
    const { name, index, append, value, line } = assignment;
    const before = append ? this.variables.get(name) : undefined;
    const words = value.type === 'array' ? value.words : [value.word];
    if (this.#isFromArguments(words)) this.#fromArguments.add(name);
    else if (!append) this.#fromArguments.delete(name);
    if (index !== undefined) return this.#assignElement(assignment);
    if (value.type === 'array') {
      if (words.some(isKeyed)) return this.#loseArray(name, line);
      const items = value.words.flatMap((word) => this.variables.fields(word));
      const first = before === undefined ? [] : before.type === 'array' ? before.items : [{ text: before.text, line }];
      within('tokens', first.length + items.length, line);
      this.variables.set(name, { type: 'array', items: [...first, ...items] });
      return;
    }
    const read = this.variables.text(value.word);
    const text = hasHole(read) && !append ? (this.#env.get(name) ?? read) : read;
    if (before?.type === 'array') {
      this.#note(line, `${name}+=… to an array is not read`);
      this.variables.set(name, { type: 'array', items: [...before.items, { text, line }] });
      return;
    }
    within('value', (before?.text ?? '').length + text.length, line);
    this.variables.set(name, { type: 'scalar', text: (before?.text ?? '') + text });
  }

  #assignElement({ name, index, append, value, line }: Assignment): void {
    const before = this.variables.get(name);
    const items = before?.type === 'array' ? before.items : before === undefined ? [] : [{ text: before.text, line }];
    const at = Number(index);
    if (value.type === 'array' || append || !(at <= items.length)) return this.#loseArray(name, line);
    const element = { text: this.variables.text(value.word), line };
    this.variables.set(name, { type: 'array', items: [...items.slice(0, at), element, ...items.slice(at + 1)] });
  }

  /** None of the elements is known any more. */
  #loseArray(name: string, line: number): void {
    const text = this.variables.holes.make(line, `the array ${name}, of which line ${line} sets elements by name`);
    this.variables.set(name, { type: 'scalar', text });
  }

  #note(line: number, text: string): void {
    within('notes', this.notes.length, line);
    if (!this.notes.some((note) => note.line === line && note.text === text)) this.notes.push({ line, text });
  }
}

/** `actor.optim.lr=…` at the beginning of a word. */
const OVERRIDE = /^[~+]{0,2}[a-z]\w*(?:\.\w+)+=/;
/** The script in `bash -c "…"`, also behind another command: `srun bash -lc "…"`. */
function shellTextOf(fields: readonly Field[]): string | undefined {
  const texts = fields.map(({ text }) => text);
  const at = texts.findIndex((text, index) => /^-[a-z]*c$/.test(text) && SHELL.test(texts[index - 1] ?? ''));
  return at < 0 || PRINTERS.has(texts[0] ?? '') ? undefined : texts[at + 1];
}

const SHELL = /(?:^|\/)(?:ba|da|z)?sh$/;

/** `[key]=value` in an array. */
const isKeyed = ({ parts: [first] }: Word): boolean =>
  first?.type === 'text' && !first.quoted && /^\[[^\],]*\]=/.test(first.text);

const shown = (text: string): string => (hasHole(text) ? 'a file' : text.slice(0, LIMITS.depth));
