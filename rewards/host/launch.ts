/** The program that runs a scorer: Node with the child of this folder, or Python with child.py. */
import { existsSync } from 'node:fs';
import { delimiter, extname, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { InvalidInputError } from '../../core/errors.ts';
import { builtinScorer } from '../registry.ts';
import { packageFile } from '../package-file.ts';
import { sandboxedHost } from '../sandbox/host.ts';
import { pythonCommand } from '../sandbox/python.ts';
import type { CallLimits, ScorerSettings } from '../types.ts';
import type { Desks } from './host-types.ts';
import type { Request } from './protocol.ts';
import { prepareScorer } from './prepare-scorer.ts';
import { pythonProgram } from './python-scorers.ts';

/** Which scorer. */
export type ScorerSpec =
  /** The built-in scorer's name; without one each row's data source decides. */
  | ({ readonly type: 'builtin'; readonly name?: string | null | undefined } & SpecDetail)
  /** A user's module: .ts, .mts, .js, .mjs, .cjs or .py. */
  | ({
      readonly type: 'module';
      readonly path: string;
      readonly exportName: string;
      /** A call gets all samples of `ScorerHost.score` as a list. */
      readonly lists?: boolean | undefined;
      /** The module's name in errors: the user's own file, when `path` is a copy of it. */
      readonly shownAs?: string | undefined;
      /** Key `reward.sandbox`. */
      readonly sandbox?: boolean | undefined;
      /** The folder with its other files, when it has any. */
      readonly folder?: string | undefined;
      /** The folder with the Python packages that it names. */
      readonly packages?: string | undefined;
    } & SpecDetail);

interface SpecDetail {
  readonly settings?: ScorerSettings | undefined;
  /** Environment variables that the recipe names, with their values, for the scorer only. */
  readonly secrets?: Readonly<Record<string, string>> | undefined;
  /** The desks at which its processes ask the endpoint of the run. */
  readonly desks?: Desks | undefined;
}

export interface Launch {
  readonly command: string;
  readonly args: readonly string[];
  readonly load: Request;
  /** Variables that replace those of this process, or remove them. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly secrets: Readonly<Record<string, string>>;
  readonly shownAs: string | undefined;
  readonly desks?: Desks | undefined;
}

type Program = Pick<Launch, 'command' | 'args' | 'load' | 'env'>;

const TYPESCRIPT = ['.ts', '.mts'];
const JAVASCRIPT = ['.js', '.mjs', '.cjs'];

/**
 * @throws InvalidInputError when the scorer is unknown, or its module is missing or in another language; UnfitError
 *   when this machine lacks the Python packages or the sandbox that the scorer needs.
 */
export function launchOf(spec: ScorerSpec, limits: CallLimits): Launch {
  const shownAs = spec.type === 'module' ? (spec.shownAs ?? resolve(spec.path)) : undefined;
  const program = programOf(spec, limits);
  const walled = spec.type === 'module' && spec.sandbox === true ? sandboxedHost(program, filesOf(spec)) : undefined;
  const env = { ...program.env, ...walled?.env };
  return { ...program, ...walled, env, secrets: spec.secrets ?? {}, shownAs, desks: spec.desks };
}

/** What a sandbox shows of the scorer. */
function filesOf({ path, folder, packages }: Extract<ScorerSpec, { type: 'module' }>): string[] {
  return [folder ?? resolve(path), ...(packages === undefined ? [] : [packages])];
}

function programOf(spec: ScorerSpec, { timeoutMs, memoryMb }: CallLimits): Program {
  const settings = spec.settings ?? {};
  if (spec.type === 'builtin') return builtin(spec.name ?? null, settings, { timeoutMs, memoryMb });
  const path = resolve(spec.path);
  if (!existsSync(path)) throw new InvalidInputError(`there is no scorer module ${path}`);
  const load: Request = { type: 'load', module: path, name: spec.exportName, settings, memoryMb };
  const extension = extname(path);
  if (extension === '.py') return python(load, packagesPath(spec.packages));
  if (![...TYPESCRIPT, ...JAVASCRIPT].includes(extension)) {
    throw new InvalidInputError(`a scorer module is TypeScript, JavaScript or Python, got ${path}`, {
      hint: `a name that ends in ${[...TYPESCRIPT, ...JAVASCRIPT, '.py'].join(', ')}`,
    });
  }
  // Other files of a module in JavaScript may be TypeScript.
  return node(TYPESCRIPT.includes(extension) || spec.folder !== undefined, memoryMb, load);
}

/** The packages that a scorer names come before the installed ones. */
function packagesPath(packages: string | undefined): Readonly<Record<string, string>> {
  if (packages === undefined) return {};
  const others = process.env['PYTHONPATH'];
  return { PYTHONPATH: others ? `${packages}${delimiter}${others}` : packages };
}

function builtin(name: string | null, settings: ScorerSettings, limits: CallLimits): Program {
  const { memoryMb } = limits;
  const scorer = name === null ? undefined : builtinScorer(name);
  if (name !== null) prepareScorer(name, settings, limits);
  if (scorer?.type !== 'python') return node(false, memoryMb, { type: 'load', builtin: name, settings, limits });
  const { module, env } = pythonProgram(scorer.module);
  return python({ type: 'load', module, name: 'compute_score', settings, memoryMb }, env);
}

function python(load: Request, env: Readonly<Record<string, string>>): Program {
  return { command: pythonCommand(), args: ['-u', packageFile('rewards', 'host', 'child.py')], load, env };
}

/**
 * The program of a child in Node; in dist the child is compiled. When this file runs from source, as in tests, the
 * child is TypeScript.
 */
function node(typescript: boolean, memoryMb: number, load: Request): Program {
  const own = import.meta.url;
  const child = fileURLToPath(new URL(own.endsWith('.ts') ? './child.ts' : './child.js', own));
  const strip =
    typescript || child.endsWith('.ts')
      ? ['--import', pathToFileURL(packageFile('rewards', 'host', 'strip-types.mjs')).href]
      : [];
  const args = [`--max-old-space-size=${memoryMb}`, '--no-warnings', '--enable-source-maps', ...strip, child];
  return { command: process.execPath, args, load, env: {} };
}
